from stub import ScriptDirectory
