from stub import db_version
