#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of pages as a reader does, and prints TAP.

    blocks.py run laptop|cluster CLONE WORK REPLACEMENTS PAGE..
    blocks.py count PAGE..         prints how many blocks run without a cluster, with one, and not at all

A block is fenced with ```sh, ```bash or ```console, or with ``` alone when its first line is a command. One that names
kubectl, helm or a command of gpuscale that needs an API server runs where there is a cluster; every other block runs on a
laptop. All blocks of a page share one shell, in CLONE. In a console block, `$ ` starts a command; what follows is its
output, which must be what the command prints: `..` stands for anything, a line of `..` for any lines. A command whose
output is not compared must succeed. A mark in the line above the fence changes this:

    <!-- not run: REASON -->       the block does not run
    <!-- output: REASON -->        the output is not compared
    <!-- needs a cluster -->       the block runs where there is a cluster
    <!-- file: NAME -->            the block, in any language, is a file that later blocks use; where the clone has it, it
                                   must be the same but for comments at its top

Before a page, the command $PAGE_HOOK gets its name. Each line of REPLACEMENTS is an address or a path of the pages, a tab, and the one of this test. WORK gets the logs.
"""
import collections
import os
import re
import signal
import subprocess
import sys

SLOW_S = 3
LIMIT_S = {'laptop': 300, 'cluster': 900}  # of a page
COMMAND = re.compile(r'\$ |(gpuscale|gpuscale-exporter|kubectl|helm|make|curl|promtool|scripts/\w+|sudo|python3)\b')
CLUSTER = re.compile(r'\b(kubectl|helm)\b|scripts/cluster\b|\bgpuscale (get|describe|top|pause|resume|capacity|run)\b')
FENCE = re.compile(r'( *)```(\w*)\s*$')
MARK = re.compile(r' *<!-- (not run|output|file|needs a cluster)(?:: (.+))? -->\s*$')
Block = collections.namedtuple('Block', 'page line language marks lines')


def blocks_of(page, text):
    """Yields the blocks of a page, commands and files."""
    opened, marks = None, {}
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if opened is None and fence:
            opened = (number, len(fence[1]), fence[2], marks, [])
        elif opened is not None and fence and not fence[2]:
            yield Block(page, *opened[:1], opened[2], opened[3], [part[opened[1]:] for part in opened[4]])
            opened, marks = None, {}
        elif opened is not None:
            opened[4].append(line)
        else:
            mark = MARK.match(line)
            marks = {**marks, mark[1]: mark[2] or ''} if mark else {}


def kind(block):
    """file, none (marked as not run), laptop or cluster; None for a block without commands."""
    if 'file' in block.marks:
        return 'file'
    first = next((line for line in block.lines if line.strip()), '')
    if block.language not in ('sh', 'bash', 'console') and (block.language or not COMMAND.match(first)):
        return None
    if 'not run' in block.marks:
        return 'none'
    code = '\n'.join(command for command, _ in steps(block))
    return 'cluster' if 'needs a cluster' in block.marks or CLUSTER.search(code) else 'laptop'


def steps(block):
    """The commands of a block, each with the lines of its output, or None where the page has none."""
    if not any(line.startswith('$ ') for line in block.lines):
        return [('\n'.join(block.lines), None)]
    found = []
    for line in block.lines:
        if line.startswith('$ '):
            found.append([line[2:], None])
        elif found[-1][1] is None and found[-1][0].endswith('\\'):
            found[-1][0] += '\n' + line
        elif line.strip() or found[-1][1]:
            found[-1][1] = (found[-1][1] or []) + [line]
    return [(command, None if 'output' in block.marks else output) for command, output in found]


def pattern(output):
    """A regular expression for the output that a page shows: `..` is anything, blanks are as many as there are."""
    regex = ''
    for line in '\n'.join(output).rstrip().split('\n'):
        words = [r'.*'.join(re.escape(part) for part in word.split('..')) for word in line.split()]
        regex += r'(?:.*\n)*?' if line.strip() == '..' else ' *' + ' +'.join(words) + ' *\n'
    return regex


def replaced(text, pairs, back=False):
    for old, new in pairs:
        text = text.replace(*((new, old) if back else (old, new)))
    return text


class Tap:
    def __init__(self):
        self.n = int(os.environ.get('TAP_FIRST', '0'))

    def result(self, passed, name, *detail):
        self.n += 1
        print('%s %d - %s' % ('ok' if passed else 'not ok', self.n, name), flush=True)
        lines = [] if passed else '\n'.join(detail).split('\n')
        for line in lines if len(lines) <= 40 else lines[:20] + ['..'] + lines[-20:]:
            print('# ' + line[:400])


def is_same(block, path):
    """Whether a file has the text of the block after the comments at its top."""
    with open(path, encoding='utf-8') as f:
        lines = f.read().splitlines()
    while lines and lines[0].startswith('#'):
        lines.pop(0)
    return lines == block.lines


def stop(shell):
    try:
        os.killpg(shell.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    shell.wait()


def run_page(blocks, clone, work, pairs, limit_s, tap):
    """Runs the blocks in one shell, then reports each."""
    name = os.path.join(work, blocks[0].page.replace('/', '_'))
    os.makedirs(name, exist_ok=True)
    script = ['set -o pipefail', "trap 'failed=$?' ERR",
              'curl() { command curl --retry 60 --retry-delay 1 --retry-connrefused "$@"; }']  # a reader types slower than a server starts
    parts = []
    for block in blocks:
        if kind(block) == 'file' and os.path.exists(os.path.join(clone, block.marks['file'])):
            tap.result(is_same(block, os.path.join(clone, block.marks['file'])), '%s:%d shows %s' % (block.page, block.line, block.marks['file']), 'the text differs')
            continue
        if kind(block) == 'file':
            script.append("mkdir -p \"$(dirname '%s')\"; cat >'%s' <<'END_OF_FILE'\n%s\nEND_OF_FILE" % (block.marks['file'], block.marks['file'], '\n'.join(block.lines)))
            continue
        for command, output in steps(block):
            part = os.path.join(name, 'step-%02d' % len(parts))
            with open(part, 'w', encoding='utf-8') as f:
                f.write(replaced(command, pairs) + '\n')
            script.append("start=$SECONDS; failed=0; . '%s' >'%s.out' 2>&1 </dev/null; echo $failed $((SECONDS - start)) >'%s.status'" % (part, part, part))
            parts.append((block, command, output, part))
    # Output into a file: what a block leaves in the background would keep a pipe open.
    with open(os.path.join(name, 'shell'), 'w', encoding='utf-8') as log:
        shell = subprocess.Popen(['bash', '-c', '\n'.join(script)], cwd=clone, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            shell.wait(limit_s)
        except subprocess.TimeoutExpired:
            pass
        finally:
            stop(shell)
    for block, command, output, part in parts:
        title = '%s:%d runs: %s' % (block.page, block.line, ' '.join(command.split())[:70].replace('#', ''))
        if not os.path.exists(part + '.status'):
            tap.result(False, title, 'the shell did not reach it, or did not get further within %d s' % limit_s)
            continue
        with open(part + '.out', encoding='utf-8', errors='replace') as f:
            got = replaced(f.read(), pairs, back=True)
        with open(part + '.status', encoding='utf-8') as f:
            status, seconds = f.read().split()
        if int(seconds) >= SLOW_S:
            print('# %s:%d takes %s s' % (block.page, block.line, seconds))
        if output is None:
            tap.result(status == '0', title, 'exit status ' + status, got)
        else:
            same = re.fullmatch(pattern(output), got.rstrip() + '\n' if got.strip() else '')
            tap.result(same is not None, title + ', and prints what the page shows', 'the page:', *output, 'the command:', got)


def main():
    if sys.argv[1:2] not in (['run'], ['count']):
        sys.exit(__doc__)
    running = sys.argv[1] == 'run'
    pages = sys.argv[6 if running else 2:]
    found = {}
    for page in pages:
        with open(page, encoding='utf-8') as f:
            found[page] = [b for b in blocks_of(page, f.read()) if kind(b)]
    if not running:
        counts = collections.Counter(kind(b) for blocks in found.values() for b in blocks)
        print('%d blocks run on a laptop, %d where there is a cluster, %d are marked as not run' % (counts['laptop'], counts['cluster'], counts['none']))
        return
    where, clone, work = sys.argv[2:5]
    with open(sys.argv[5], encoding='utf-8') as f:
        pairs = [tuple(line.rstrip('\n').split('\t')) for line in f]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # stops the shell of the page
    tap = Tap()
    for page, blocks in found.items():
        if any(kind(b) == where for b in blocks):
            subprocess.run('git clean -fdxq && git checkout -q .', shell=True, cwd=clone, check=True)
            if 'PAGE_HOOK' in os.environ:
                hook = subprocess.run([os.environ['PAGE_HOOK'], page], cwd=clone, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                tap.result(hook.returncode == 0, page + ': what the page expects is there', hook.stdout)
            run_page([b for b in blocks if kind(b) in (where, 'file')], clone, work, pairs, LIMIT_S[where], tap)


main()
