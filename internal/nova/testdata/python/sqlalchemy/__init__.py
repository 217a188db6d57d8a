import types

from stub import Query


def Table(*_, **__):
    return types.SimpleNamespace(c=types.SimpleNamespace(version=0, binary="", host="", last_seen_up=None, deleted=0))


def MetaData():
    return None


def select(*_):
    return Query()
