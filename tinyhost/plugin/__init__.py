"""How packages add devices, renderers and hooks to tinyhost.

A backend's author needs `tinyhost.plugin.v1` only. Inside the core: `metadata` reads entry points, `policy` decides
which may be used, `catalog` keeps a record with a state for each, `guard` bounds what a plugin's code can do to its
host, `isolate` runs a function in a child process, `hooks` calls the optional implementations. Importing this
package does nothing.
"""
