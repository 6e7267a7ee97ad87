"""The marker of hook implementations; in a module of its own, because pluggy is imported with it."""
import pluggy

hookimpl = pluggy.HookimplMarker("tinyhost")
