"""Rewrites of a graph that keep what it computes: one in each module, `run(graph)` says what it changed.

`manager.optimize(graph)` runs them in order; CONTRIBUTING.md says how one is added.
"""
