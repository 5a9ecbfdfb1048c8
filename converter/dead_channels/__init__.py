"""Channels of a graph that compute nothing or that nobody reads: following them through ops, and taking them out."""
