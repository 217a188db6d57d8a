# Sourced by the parts of bootstrap.

# databases USER NAME...
databases() {
  user=$1
  shift
  for name in "$@"; do
    echo "CREATE DATABASE $name CHARACTER SET utf8; GRANT ALL ON $name.* TO '$user'@'%' IDENTIFIED BY '$PASSWORD';"
  done | mariadb
}
