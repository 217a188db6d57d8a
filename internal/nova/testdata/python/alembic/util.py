from stub import CommandError
