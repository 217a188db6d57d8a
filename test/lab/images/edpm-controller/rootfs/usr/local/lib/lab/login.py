"""How the parts of bootstrap log in."""
import os

from keystoneauth1 import session
from keystoneauth1.identity import v3

AUTH_URL = "http://127.0.0.1:5000/v3"
PASSWORD = os.environ["PASSWORD"]


def admin():
    """Returns a session of the administrator."""
    return session.Session(auth=v3.Password(
        auth_url=AUTH_URL, username="admin", password=PASSWORD, project_name="admin",
        user_domain_name="Default", project_domain_name="Default"))
