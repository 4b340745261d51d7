"""Nodes, runtimes and hyperties inside a program of one's own; `actors` itself names it all."""
