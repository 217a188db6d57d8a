"""Says what the real oslo.config makes of configuration files.

Reads JSON lines {"files": [base64, ...]} on stdin; each is a list of files as
one service would read them. Prints one JSON line for each:

  {"files": [verdict, ...], "merged": sections or null}

A verdict is {"ok": true, "sections": sections} or
{"ok": false, "kind": "parse" or "decode", "line": int, "error": text}.
Sections are [{"name": str, "options": [{"key": str, "values": [str]}]}] in
oslo.config's own order. "merged" is what the service sees if all files are
good: sections under their normalised names, with the values of a MultiOpt in
"values" and the value of any other Opt in "last".
"""

import base64
import json
import sys
import tempfile

from oslo_config import cfg


def decode_error_line(data, error):
    """The line of the first bad byte; Python itself names only the byte."""
    # Decode again in one piece: the reader counts from the start of a chunk.
    try:
        data.decode('utf-8')
    except UnicodeDecodeError as whole:
        before = data[:whole.start]
        return len((before.replace(b'\r\n', b'\n').replace(b'\r', b'\n') + b'x').split(b'\n'))
    raise error


def verdict(path, data):
    sections = {}
    parser = cfg.ConfigParser(path, sections)
    try:
        parser.parse()
    except cfg.ParseError as e:
        return {'ok': False, 'kind': 'parse', 'line': e.lineno, 'error': e.msg}
    except UnicodeDecodeError as e:
        return {'ok': False, 'kind': 'decode',
                'line': decode_error_line(data, e), 'error': e.reason}
    return {'ok': True,
            'sections': [
                {'name': s, 'options': [{'key': k, 'values': v}
                                        for k, v in keys.items()]}
                for s, keys in sections.items()]}


def merged(paths):
    namespace = cfg._Namespace(cfg.ConfigOpts())
    for path in paths:
        cfg.ConfigParser._parse_file(path, namespace)
    names = {}
    for sections in reversed(namespace._normalized):
        for section, keys in sections.items():
            names.setdefault(section, {}).update(dict.fromkeys(keys))
    return [{'name': s, 'options': [
        {'key': k,
         'values': namespace._get_value([(s, k)], multi=True)[0],
         'last': namespace._get_value([(s, k)])[0]} for k in keys]}
        for s, keys in names.items()]


def answer(request, paths):
    verdicts = []
    for path, file in zip(paths, request['files']):
        data = base64.b64decode(file)
        with open(path, 'wb') as f:
            f.write(data)
        verdicts.append(verdict(path, data))
    used = paths[:len(verdicts)]
    good = all(v['ok'] for v in verdicts)
    return {'files': verdicts, 'merged': merged(used) if good else None}


def main():
    # Few names, rewritten for each request, keep this fast.
    with tempfile.TemporaryDirectory() as folder:
        paths = ['%s/%d.conf' % (folder, i) for i in range(4)]
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line), paths)))


if __name__ == '__main__':
    main()
