"""Traces that are judged while processes write them: a source, two stateful folds, a loop."""
