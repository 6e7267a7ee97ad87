"""Threads of the host that run generated code from rings, without Python between one kernel and the next."""
