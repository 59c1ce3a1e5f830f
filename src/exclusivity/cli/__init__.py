"""The command ``erm``: one module per subcommand, nothing heavy imported before it is needed."""
