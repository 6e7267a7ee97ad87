"""Private parts of ``tinyhost.tensor.Tensor``; import the class from there."""
