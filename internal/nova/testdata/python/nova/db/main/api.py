from stub import Engine


def get_engine(context=None):
    return Engine()
