"""Devices driven from user space: memory, signals, rings and command streams of no particular hardware."""
