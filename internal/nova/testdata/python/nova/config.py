def parse_args(argv): pass
