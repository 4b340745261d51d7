"""Nodes, runtimes and hyperties inside a program; the package `actors` exports the names."""
