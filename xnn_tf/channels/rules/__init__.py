"""What each kind of layer does with channels: one family of layers per file, found by class name in `registry`."""
