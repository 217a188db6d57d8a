def version_string():
    return "31.0.0"
