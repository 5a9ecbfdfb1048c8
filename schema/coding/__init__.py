"""How stored tensors become bytes: stream formats, the encoder's choice among them, and the numpy decoder."""
