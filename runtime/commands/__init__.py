"""The command lines `python -m runtime COMMAND`: one module for each, with `add_arguments(parser)` and
`run(options)`.
"""
