def register_all():
    pass
