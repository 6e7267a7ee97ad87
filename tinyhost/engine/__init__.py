"""From a scheduled graph to finished work: program and schedule caches, plans, execution, capture and replay."""
