"""From a scheduled graph to finished work: program and schedule caches, execution, capture."""
