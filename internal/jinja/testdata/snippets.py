"""Writes snippets.jsonl: small templates with what Jinja2 makes of them.

Run by hand, with jinja2 3.1 and Python 3.11, after adding a line below:
    python3 snippets.py > snippets.jsonl
"""

import datetime
import json
import re

import jinja2
from jinja2 import ext, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

VARS = json.loads(r"""{
 "x": 5, "s": "héllo wörld", "n": null, "t": true, "f": 2.5, "e": "", "l": [3, 1, 2], "big": 9007199254740993,
 "huge": 123456789012345678901234567890, "d": {"a": 1, "b": [1.0, null, true], "c": {"k": "v"}, "items": "shadow"},
 "users": [{"name": "Bo", "age": 3, "tags": {"x": 1}}, {"name": "al", "age": 1.5}, {"name": "Cy", "age": 3, "ok": true}],
 "html": "<a href='x'>&\"</a>", "m": "a\nb\n\nc", "quote": "it's", "fl": [1e16, 1e-5, 0.1, 1e22, 100.0, 1e3, 123456789.123, -0.0]
}""")

# One template a line; a few with newlines follow.
LINES = r"""
{{ x }} {{ f }} {{ n }} {{ t }} {{ e }} {{ l }} {{ d }} {{ big }} {{ huge }} {{ fl }}
{{ quote }} {{ [quote, 'a"b', 'a\'b"c', "\n\t\\", "\x00\x7f\xa0é\u2028\U0001f600"] }}
{{ (1,) }} {{ () }} {{ (1, 'a') }} {{ {} }} {{ [] }} {{ {'a': (1, 2), 2: none, none: 1.5, true: 0} }}
{{ nope }}|{{ nope.foo }}
{{ d.nope }}|{{ d.nope.foo }}
{{ d['nope'] }}|{{ l[10] }}|{{ l['a'] }}|{{ s[99] }}|{{ x[0] }}
{{ nope() }}
{{ l.startswith('a') }}
{{ nope + 1 }}
{{ 1 + nope }}
{{ nope ~ 'a' }}|{{ nope == nope2 }}|{{ nope != 1 }}|{{ not nope }}|{{ nope|length }}|{{ nope|list }}|{{ 'a' in nope }}
{{ nope < 1 }}
{{ nope[0] }}
{{ -nope }}
{{ l[7].x }}
{{ d[1].x }}
{{ d[l].x }}
{{ none.foo.bar }}
{{ x.foo.bar }}
{{ nope|int }}
{{ nope|float }}
{{ d['items'] }}
{{ d.items() }}|{{ d.keys() }}|{{ d.values() }}|{{ d.get('a') }}|{{ d.get('z') }}|{{ d.get('z', 1) }}
{{ d.items()|list }} {{ d.keys()|list }} {{ d|list }} {{ d|length }} {{ d.items()|length }}
{{ d.update({'a': 2}) }}
{{ l.append(4) }}
{{ d.pop }}|{{ d.pop is defined }}
{{ d.pop('a') }}
{{ s.__class__ }}|x
{{ s.__class__.__mro__ }}
{{ l.index(1) }} {{ l.count(3) }} {{ (1, 2, 1).count(1) }} {{ l.copy() }}
{{ l.index(9) }}
{{ 1 + 2 * 3 - 4 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 8 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 3 ** 2 }}
{{ 7.5 // 2 }} {{ -7.5 // 2 }} {{ -7.5 % 2 }} {{ 7.5 % -2 }} {{ 1e308 * 10 }} {{ -2 ** 2 }} {{ (-2) ** 2 }} {{ 2 ** 0.5 }}
{{ 0.1 + 0.2 }} {{ 1 + 1.0 }} {{ true + true }} {{ true * 3 }} {{ 1 / 3 }} {{ 10 ** 20 }} {{ big * big }} {{ big + 1 }} {{ -big }} {{ 9223372036854775807 + 1 }}
{{ -9223372036854775807 - 2 }} {{ 4611686018427387904 * 2 }} {{ huge // 7 }} {{ huge % 7 }} {{ huge / 7 }} {{ -huge // 7 }} {{ huge == huge }} {{ huge > x }}
{{ big == 9007199254740992.0 }} {{ 9007199254740992 == 9007199254740992.0 }} {{ big > 9007199254740992.0 }} {{ 1 == true }} {{ 1 == 1.0 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1.0 / 0 }}
{{ 1.0 // 0 }}
{{ 1.0 % 0 }}
{{ 0 ** -1 }}
{{ 'a' + 1 }}
{{ 'a' + l }}
{{ 1 + 'a' }}
{{ 'a' + n }}
{{ n + 'a' }}
{{ l + 'a' }}
{{ l + (1,) }}
{{ (1,) + l }}
{{ l + [4] }} {{ (1,) + (2,) }} {{ l * 2 }} {{ 'ab' * 3 }} {{ 2 * 'ab' }} {{ 'a' * -1 }} {{ (1,) * 2 }} {{ 'ab' * true }}
{{ 'a' * 'b' }}
{{ 'a' * 1.5 }}
{{ 'a' - 'b' }}
{{ l - l }}
{{ d + d }}
{{ n ** 2 }}
{{ -'a' }}
{{ +true }} {{ -true }} {{ - 5 }} {{ --5 }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 == true }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ (1,) <= (1, 2) }} {{ 3 >= 3 }} {{ 3 != 4 }}
{{ 1 < 'a' }}
{{ n < 1 }}
{{ d < d }}
{{ [1, 'a'] < [1, 2] }}
{{ 'a' in 'abc' }} {{ 'z' not in 'abc' }} {{ 1 in l }} {{ 'a' in d }} {{ 1 in {1.0: 2} }} {{ none in [none] }} {{ (1 in l) is true }} {{ 2 in range(3) }} {{ 'a' in d.keys() }}
{{ 1 in 'abc' }}
{{ 'a' in n }}
{{ 'a' in x }}
{{ l in d }}
{{ not true and false or true }} {{ 0 or 'x' }} {{ 1 and 'y' }} {{ '' or none }} {{ not 1 == 2 }} {{ not not 1 }}
{{ 'yes' if x > 3 else 'no' }}{{ 'a' if false }}{{ ('a' if false) is undefined }}
{{ ('a' if false) + 'b' }}
{{ 'a' if true else 'b' if false else 'c' }}
{{ x is defined }} {{ nope is defined }} {{ nope is undefined }} {{ n is none }} {{ s is string }} {{ d is mapping }} {{ l is iterable }} {{ l is sequence }} {{ d is sequence }} {{ s is iterable }} {{ x is iterable }}
{{ x is number }} {{ f is number }} {{ t is number }} {{ x is integer }} {{ t is integer }} {{ f is float }} {{ t is boolean }} {{ t is true }} {{ 1 is true }} {{ false is false }} {{ 0 is false }}
{{ x is odd }} {{ x is even }} {{ 10 is divisibleby 5 }} {{ 10 is divisibleby(3) }} {{ 3 is in l }} {{ x is eq 5 }} {{ x is ne 5 }} {{ x is gt 3 }} {{ x is lt(3) }}
{{ x is equalto 5 }} {{ 'abc' is lower }} {{ 'ABC' is upper }} {{ 'aB' is lower }} {{ x is sameas 5 }} {{ n is sameas none }} {{ 'trim' is filter }} {{ 'nope' is filter }} {{ 'odd' is test }} {{ range is callable }} {{ x is callable }}
{{ x is not none }} {{ not x is none }} {{ x is not defined }} {{ x is defined and x is number }}
{{ nope is none }} {{ nope is string }} {{ nope is iterable }} {{ nope is sequence }} {{ nope is mapping }} {{ nope is callable }}
{{ d.keys() is sequence }} {{ d.items() is iterable }} {{ (l|map('string')) is iterable }} {{ (l|map('string')) is sequence }} {{ range(3) is sequence }} {{ (1,) is sequence }}
{{ 'a' is odd }}
{{ n is even }}
{{ l[0] }} {{ l[-1] }} {{ l[1:] }} {{ l[:-1] }} {{ l[::-1] }} {{ l[::2] }} {{ l[5:] }} {{ l[-100:100] }} {{ l[2:0:-1] }} {{ s[1:4] }} {{ s[::-1] }} {{ s[-3:] }} {{ (1, 2, 3)[1:] }} {{ range(10)[2:5]|list }} {{ range(10)[::-3]|list }}
{{ l[none:2] }} {{ l[true:] }} {{ l.0 }} {{ d.b.1 }} {{ d['c']['k'] }} {{ d.c.k }} {{ s[1] }} {{ s[-1] }}
{{ l[::0] }}
{{ l['a':] }}
{{ n[1:] }}
{{ d[1:] }}
{{ x[1:] }}
{{ nope[1:] }}
{{ (l|map('string'))[1:] }}
{{ 'a' 'b' }} {{ "a\tb" }} {{ 'a\qb' }} {{ '\u00e9\x41\101' }} {{ 1_000 }} {{ 0x1f }} {{ 0b11 }} {{ 0o17 }} {{ 1e3 }} {{ 1.5e-7 }} {{ 1_0.5 }} {{ 00 }}
{{ 'Hello'.upper() }} {{ 'Hello'.lower() }} {{ 'hello world'.title() }} {{ "they're bill's".title() }} {{ 'hELLO'.capitalize() }} {{ 'aB'.swapcase() }} {{ 'straße'.upper() }} {{ 'ΑΣ'.lower() }} {{ 'ǆ'.title() }} {{ 'ﬁx'.capitalize() }}
{{ '  a b '.strip() }}| {{ '  a '.lstrip() }}|{{ '  a '.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'abcba'.lstrip('ab') }}|{{ 'abcba'.rstrip('ab') }}|{{ '\x1c a\xa0'.strip() }}|{{ ' a'.strip(none) }}
{{ 'a,b,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a  b '.split() }} {{ ' a b c'.split(none, 1) }} {{ 'a b c '.rsplit(none, 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a,b'.split(sep=',', maxsplit=0) }} {{ 'abc'.split('x') }}
{{ 'a\nb\r\nc\x0bd'.splitlines() }} {{ 'a\nb\n'.splitlines(true) }} {{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'abc'.partition('x') }} {{ 'abc'.rpartition('x') }}
{{ 'abc'.startswith('a') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'abc'.startswith('b', 1) }} {{ 'abc'.startswith('') }} {{ 'abc'.endswith('b', 0, 2) }} {{ 'abc'.startswith((),) }} {{ ''.startswith('', 1) }}
{{ 'aXbX'.replace('X', 'y') }} {{ 'aXbX'.replace('X', 'y', 1) }} {{ 'abc'.replace('', '-') }} {{ 'abc'.find('c') }} {{ 'abc'.find('z') }} {{ 'abcabc'.rfind('b') }} {{ 'héhé'.find('h', 1) }} {{ 'aaa'.count('a') }} {{ 'aaa'.count('') }} {{ 'abc'.index('b') }}
{{ ','.join(['a', 'b']) }} {{ ''.join('abc') }} {{ '-'.join(d) }} {{ ','.join(l|map('string')) }} {{ ','.join([]) }}
{{ ','.join(l) }}
{{ ','.join(1) }}
{{ 'abc'.index('z') }}
{{ 'a'.split('') }}
{{ 'a'.split(1) }}
{{ 'a'.startswith(1) }}
{{ 'a'.startswith() }}
{{ 'a'.replace('a') }}
{{ 'a'.replace('a', 1) }}
{{ 'a'.upper(1) }}
{{ 'a'.strip(1) }}
{{ 'a'.strip('a', 'b') }}
{{ 'a'.join() }}
{{ 'a'.strip(chars='a') }}
{{ 'a'.split(foo=1) }}
{{ '123'.isdigit() }} {{ '12a'.isdigit() }} {{ ''.isdigit() }} {{ 'abc'.isalpha() }} {{ 'a1'.isalnum() }} {{ '²'.isdigit() }} {{ '½'.isnumeric() }} {{ '²'.isdecimal() }} {{ ' '.isspace() }} {{ 'aB'.islower() }} {{ 'A1'.isupper() }} {{ 'Ab Cd'.istitle() }} {{ 'a_1'.isidentifier() }} {{ 'é'.isascii() }}
{{ '42'.zfill(5) }} {{ '-42'.zfill(5) }} {{ 'a'.center(4) }}|{{ 'ab'.center(5, '*') }}|{{ 'a'.ljust(3) }}|{{ 'a'.rjust(3, '.') }}|{{ 'a\tb'.expandtabs(4) }}|{{ 'abc'.removeprefix('a') }}|{{ 'abc'.removesuffix('c') }}|{{ 'abc'.center(2) }}|{{ 'abc'.center(6, '*') }}|{{ 'abcd'.center(7, '*') }}
{{ '{} {}'.format(1, 'a') }} {{ '{0}{1}{0}'.format(1, 2) }} {{ '{a.x}'.format(a={'x': 1}) }} {{ '{a[x]}'.format(a={'x': 1}) }} {{ '{:>5}|{:<5}|{:^5}|{:*^7}'.format(1, 2, 3, 'a') }} {{ '{:05d} {:+d} {:x} {:#x} {:b} {:,}'.format(42, 1, 255, 255, 5, 1234567) }}
{{ '{:.2f} {:e} {:g} {:%} {:10.3f}|{:.3}|{:.3}'.format(3.14159, 12345.678, 0.00001, 0.5, 2.5, 'abcdef', 1234.5) }} {{ '{!r} {!s}'.format('a', 'b') }} {{ '{{}}'.format() }} {{ '{:{w}}|'.format('a', w=4) }} {{ '{:>08.2f} {:_}'.format(3.14159, 12345678) }} {{ '{:c}'.format(65) }}
{{ '{}'.format() }}
{{ '{a}'.format() }}
{{ '{'.format() }}
{{ '}'.format() }}
{{ '{:d}'.format('a') }}
{{ '{:d}'.format(1.5) }}
{{ '{:s}'.format(none) }}
{{ '{a.__class__}'.format(a=1) }}|x
{{ '{0} {}'.format(1) }}
{{ '%s %d %r' % ('a', 5, 'b') }} {{ '%5.2f|%-5s|%05d|%+d|%x|%X|%o|%#x|%e|%g|%%|%c' % (3.14159, 'a', 42, 1, 255, 255, 8, 255, 1234.5, 0.0001, 'z') }} {{ '%(a)s-%(b)s' % {'a': 1, 'b': 2} }} {{ '%s' % l }} {{ '%s' % none }} {{ '%.2s' % 'abc' }} {{ '%*d' % (5, 42) }} {{ '%i' % 3.9 }} {{ 'abc' % d }} {{ '%g %g %g' % (1e20, 100000, 1234567) }} {{ '%.3d' % 7 }} {{ '%s' % (l,) }}
{{ '%s %s' % 'a' }}
{{ '%s' % ('a', 'b') }}
{{ '%d' % 'a' }}
{{ '%f' % 'a' }}
{{ '%x' % 1.5 }}
{{ '%y' % 1 }}
{{ '%' % 1 }}
{{ '%(a)s' % 1 }}
{{ '%(z)s' % {'a': 1} }}
{{ 'abc' % 1 }}
{{ '%s|%s'|format('a', 1) }} {{ '%(a)s'|format(a=1) }} {{ 'abc'|format }}
{{ '%s'|format('a', b=1) }}
{{ d|tojson }} {{ l|tojson }} {{ s|tojson }} {{ n|tojson }} {{ t|tojson }} {{ fl|tojson }} {{ huge|tojson }} {{ (1, 'a')|tojson }} {{ html|tojson }} {{ '\x00\x1f\x7f\n\t\\"/é\u2028😀'|tojson }} {{ '\x00é\x7f😀\uffff'|tojson(ensure_ascii=true) }}
{{ d|tojson(indent=2) }} {{ d|tojson(indent=4, sort_keys=true) }} {{ {'b': 1, 'a': [1, {}, [], ()]}|tojson(indent=1) }} {{ d|tojson(indent=0) }} {{ d|tojson(indent='--') }}
{{ d|tojson(separators=(',', ':')) }} {{ d|tojson(indent=2, separators=(', ', '=')) }} {{ {1: 2, 1.5: 3, none: 4, true: 5}|tojson }} {{ {'b': 1, 'a': 2}|tojson(sort_keys=true) }}
{{ {(1, 2): 3}|tojson }}
{{ nope|tojson }}
{{ [nope]|tojson }}
{{ d.items()|tojson }}
{{ (l|map('string'))|tojson }}
{{ range(3)|tojson }}
{{ namespace(a=1)|tojson }}
{{ {1: 2, 'a': 3}|tojson(sort_keys=true) }}
{{ d|tojson(foo=1) }}
{{ ' a '|trim }}|{{ 'xax'|trim('x') }}|{{ 5|trim }}|{{ nope|trim }}|{{ n|trim }}|{{ l|trim('[]') }}
{{ 'abc'|length }} {{ l|count }} {{ s|length }} {{ range(5)|length }}
{{ x|length }}
{{ n|length }}
{{ (l|map('string'))|length }}
{{ l|join(',') }} {{ l|join }} {{ users|join(', ', attribute='name') }} {{ 'abc'|join('-') }} {{ [1, none, nope, 'a']|join('/') }} {{ d|join('|') }} {{ l|join(1) }}
{{ x|join }}
{{ users|map(attribute='name')|list }} {{ users|map(attribute='tags.x')|list }} {{ users|map(attribute='tags', default='-')|list }} {{ ['a', 'b']|map('upper')|list }} {{ ['a-b']|map('replace', '-', '+')|list }} {{ [[1, 2]]|map('first')|list }} {{ [[1, 2]]|map(attribute=0)|list }} {{ ['a,b']|map('trim', 'a')|join }} {{ nope|map('upper')|list }}
{{ l|map|list }}
{{ l|map('nope')|list }}
{{ l|map(nope)|list }}
{{ l|map(attribute='a', foo=1)|list }}
{{ x|map('string')|list }}
{{ l|select('odd')|list }} {{ l|reject('odd')|list }} {{ [0, 1, '', 'a']|select|list }} {{ [0, 1]|reject|list }} {{ users|selectattr('ok')|map(attribute='name')|list }} {{ users|rejectattr('ok')|map(attribute='name')|list }} {{ users|selectattr('age', 'eq', 3)|map(attribute='name')|list }} {{ users|selectattr('name', 'in', ['Bo'])|list }} {{ l|select('gt', 1)|list }} {{ users|selectattr('ok', 'defined')|list|length }} {{ users|rejectattr('age', 'equalto', 3)|list|length }} {{ users|selectattr('tags.x', 'defined')|list|length }}
{{ l|select('nope')|list }}
{{ users|selectattr|list }}
{{ users|selectattr('age', 'gt', 'a')|list }}
{{ l|sort }} {{ l|sort(reverse=true) }} {{ ['b', 'A', 'c']|sort }} {{ ['b', 'A', 'c']|sort(case_sensitive=true) }} {{ users|sort(attribute='name')|map(attribute='name')|list }} {{ users|sort(attribute='age,name')|map(attribute='name')|list }} {{ users|sort(attribute='age', reverse=true)|map(attribute='name')|list }} {{ d|sort }} {{ [[2, 1], [1, 2]]|sort }} {{ [1.5, 1, true]|sort }}
{{ [1, 'a']|sort }}
{{ ['a', 1]|sort(reverse=true) }}
{{ [n, 1]|sort }}
{{ users|sort(attribute='tags') }}
{{ users|sort }}
{{ l|first }} {{ l|last }} {{ []|first }} {{ []|last }} {{ 'abc'|first }} {{ d|first }} {{ d|last }} {{ (1, 2)|last }} {{ (l|map('string'))|first }}
{{ (l|map('string'))|last }}
{{ x|first }}
{{ ([]|first).foo }}
{{ l|reverse|list }} {{ 'abc'|reverse }} {{ (1, 2)|reverse|list }} {{ (l|map('string')|reverse) }} {{ d|reverse|list }}
{{ x|reverse }}
{{ l|list }} {{ 'abc'|list }} {{ d|list }} {{ range(3)|list }}
{{ n|list }}
{{ d|items|list }} {{ nope|items|list }} {{ d|dictsort }} {{ {'b': 1, 'A': 2}|dictsort }} {{ {'b': 1, 'A': 2}|dictsort(true) }} {{ {'b': 1, 'a': 2}|dictsort(false, 'value') }} {{ {'b': 1, 'a': 2}|dictsort(by='key', reverse=true) }}
{{ l|items|list }}
{{ 'a'|items|length }}
{{ {'a': 1}|dictsort(by='x') }}
{{ l|dictsort }}
{{ 'hello world-foo (bar)'|title }} {{ 'hELLO wORLD'|capitalize }} {{ 'abc'|upper }} {{ 'ABC'|lower }} {{ 5|upper }} {{ n|lower }} {{ "it's"|title }} {{ 'a\tb'|title }} {{ nope|upper }}
{{ 'abcb'|replace('b', 'x') }} {{ 'abcb'|replace('b', 'x', 1) }} {{ 155|replace(5, 6) }} {{ 'a'|replace('a', none) }}
{{ 'a'|replace }}
{{ 'a'|replace('a') }}
{{ nope|default('x') }} {{ nope|d }}| {{ n|default('x') }} {{ ''|default('x', true) }} {{ 0|default('x', boolean=true) }} {{ d.zz|default('y') }} {{ e|default(default_value='q', boolean=true) }}
{{ nope.foo|default('x') }}
{{ '42'|int }} {{ '42.7'|int }} {{ 'a'|int }} {{ 'a'|int(7) }} {{ 3.9|int }} {{ -3.9|int }} {{ '0x1f'|int(base=16) }} {{ '11'|int(base=2) }} {{ n|int }} {{ true|int }} {{ ' 7 '|int }} {{ '1_0'|int }} {{ '1e3'|int }} {{ l|int(3) }} {{ '123456789012345678901234567890'|int }} {{ '+5'|int }} {{ 'inf'|int }} {{ ''|int }} {{ '--5'|int }}
{{ '1.5'|float }} {{ 'a'|float }} {{ 'a'|float(2.5) }} {{ 3|float }} {{ 'inf'|float }} {{ 'nan'|float }} {{ n|float }} {{ '1e5'|float }} {{ '1_0.5'|float }} {{ '-Infinity'|float }} {{ '.5'|float }} {{ '0x1'|float }}
{{ 5|string + 'a' }} {{ n|string }} {{ l|string }} {{ nope|string }}| {{ 1.0|string }}
{{ html|e }} {{ html|escape }} {{ html|safe }} {{ html|e|e }} {{ html|e|forceescape }} {{ [html|safe] }} {{ 5|e }} {{ ('<'|safe) + '>' }} {{ '<' + ('>'|safe) }} {{ ('<b>'|safe) ~ '<i>' }} {{ ('<%s>'|safe) % '<' }} {{ ('a'|safe).join(['<', 'b']) }} {{ ('<'|safe)|tojson }} {{ ('<'|safe).replace('<', '&') }} {{ ('<{}>'|safe).format('<') }} {{ ('a b'|safe).split() }} {{ (html|safe) is escaped }} {{ 'A'|safe|lower is escaped }} {{ ('<'|safe) * 2 }} {{ ('<'|safe) == '<' }}
{{ m|indent }}|{{ m|indent(2) }}|{{ m|indent(2, true) }}|{{ m|indent(2, blank=true) }}|{{ m|indent(width='> ', first=true) }}|{{ 'a\n'|indent }}|{{ ''|indent(2, true) }}
{{ 5|indent }}
{{ ['a', 'b', 'a', 'A']|unique|list }} {{ ['a', 'A']|unique(true)|list }} {{ users|unique(attribute='age')|map(attribute='name')|list }} {{ [1, 1.0, true]|unique|list }}
{{ [[1], [1]]|unique|list }}
{{ [1, 2, 3, 4, 5]|batch(2)|list }} {{ [1, 2, 3]|batch(2, 'x')|list }} {{ [1, 2, 3, 4, 5]|slice(2)|list }} {{ [1, 2, 3, 4, 5]|slice(3, 'x')|list }} {{ []|batch(2)|list }} {{ [1]|slice(3)|list }}
{{ l|sum }} {{ []|sum }} {{ l|sum(start=10) }} {{ users|sum(attribute='age') }} {{ [[1], [2]]|sum(start=[]) }} {{ [0.1, 0.2]|sum }}
{{ ['a']|sum }}
{{ l|min }} {{ l|max }} {{ ['b', 'A']|min }} {{ ['b', 'A']|min(true) }} {{ users|max(attribute='age') }} {{ []|min }} {{ 'hello'|max }} {{ users|min(attribute='name') }}
{{ [1, 'a']|min }}
{{ -5|abs }} {{ (-5)|abs }} {{ (-5.5)|abs }} {{ true|abs }} {{ (-huge)|abs }}
{{ 'a'|abs }}
{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 42|round }} {{ 1234|round(-2) }} {{ 42.55|round(1, 'floor') }} {{ 42.51|round(1, 'ceil') }} {{ 2.1|round(method='ceil') }} {{ 1250|round(-2) }} {{ 1350.0|round(-2) }} {{ 3|round(method='floor') }} {{ -2.5|round }} {{ 0.5|round }}
{{ 1|round(method='x') }}
{{ 'a'|round }}
{{ users|groupby('age')|list|length }} {% for g, us in users|groupby('age') %}{{ g }}:{{ us|map(attribute='name')|join('+') }};{% endfor %}{% for g in users|groupby('name') %}{{ g.grouper }}{{ g.list|length }}{% endfor %} {{ users|groupby('tags.x', default=0)|map('first')|list }} {{ ['a', 'B', 'A']|groupby(none)|list }}
{{ 'a b&c/ü'|urlencode }} {{ {'a b': 'c&d', 'e': 1}|urlencode }} {{ [('a', '/')]|urlencode }} {{ 5|urlencode }}
{{ 'hello big world'|wordcount }} {{ "it's a_b 5"|wordcount }} {{ 'hello world foo'|truncate(9) }} {{ 'hello world foo'|truncate(9, true) }} {{ 'hello world foo'|truncate(11, false, '..', 0) }} {{ 'abc'|truncate(3) }} {{ 'a'|center(3) }}| {{ d|attr('a') }}| {{ 'a'|attr('upper') is callable }}
{{ 'a'|trim('b', 'c') }}
{{ 'a'|trim(foo=1) }}
{{ 'a'|upper(1) }}
{{ l|length(1) }}
{{ 'a'|trim(value=1) }}
{{ l|join(',', 'a', 'b') }}
{{ range(3) }} {{ range(1, 10, 3)|list }} {{ range(5, 0, -2)|list }} {{ range(0)|list }} {{ range(1, 2, 3) }} {{ range(2) == range(2) }} {{ range(10)[3] }} {{ range(10)[-1] }}
{{ range(100001) }}
{{ range(1.5) }}
{{ range() }}
{{ range(0, 1, 0) }}
{{ range('a') }}
{{ dict(a=1, b='x') }} {{ dict({'a': 1}, b=2) }} {{ dict([('a', 1)]) }} {{ dict() }} {{ dict(**{'a': 1}) }} {{ dict(*[{'a': 2}]) }}
{{ dict(1) }}
{{ dict([1]) }}
{% set ns = namespace(a=1, b=[]) %}{% set ns.a = ns.a + 1 %}{% set ns.c = 'z' %}{{ ns.a }}{{ ns.c }}{{ ns }}{{ ns['a'] }}{{ ns.zz is defined }}
{% set ns = namespace({'a': 1}, b=2) %}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}
{{ namespace(a=1).zz.y }}
{% set d.a = 1 %}
{% set nope.a = 1 %}
{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}
{% for i in l|select('odd') %}{{ loop.index }}/{{ loop.length }}{{ loop.last }}{{ loop.nextitem }} {% endfor %}
{% for i in l %}{{ loop.cycle('a', 'b') }}{{ loop.changed(i // 2) }}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}
{% for i in l if i > 1 %}{{ i }}{{ loop.length }}{{ loop.index }}{% endfor %}
{% for i in [] %}x{% else %}empty{% endfor %}{% for i in l if i > 9 %}x{% else %}none{% endfor %}{% for i in l %}{{ i }}{% else %}e{% endfor %}
{% for i in l %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% else %}e{% endfor %}
{% for i in l %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}{% for i in l %}{% continue %}{% else %}E{% endfor %}{% for i in l %}{% break %}{% else %}E{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in s %}{{ c }}-{% endfor %}{% for a, b in [(1, 2), [3, 4]] %}{{ a + b }} {% endfor %}{% for (a, (b, c)) in [(1, (2, 3))] %}{{ a + b + c }}{% endfor %}
{% for a, b in l %}{{ a }}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}
{% for a, b in [(1,)] %}{{ a }}{% endfor %}
{% for a in x %}{% endfor %}
{% for a in n %}{% endfor %}
{% for a in nope %}x{% else %}nothing{% endfor %}
{% for i in [[1, [2, [3]]]] recursive %}[{{ loop.depth }}{{ loop(i) if i is sequence else i }}]{% endfor %}
{% for i in [{'n': 1, 'c': [{'n': 2, 'c': []}]}] recursive %}{{ i.n }}{{ loop(i.c) }}{{ loop.depth }}{% endfor %}
{% for i in l %}{{ loop(i) }}{% endfor %}
{% for i in l %}{{ loop }}{% endfor %}
{{ loop }}|{{ loop is defined }}
{% set y = 1 %}{% for i in l %}{% set y = i %}{{ y }}{% endfor %}{{ y }}
{% set y = 1 %}{% if true %}{% set y = 2 %}{% endif %}{{ y }}
{% for i in l %}{{ y }}{% set y = i %}{{ y }}{% endfor %}{{ y }}
{% for i in [1] %}{{ x }}{% endfor %}{% set x = 2 %}{{ x }}
{% macro mm() %}{{ x }}{% endmacro %}{{ mm() }}{% set x = 2 %}{{ mm() }}
{% if false %}{% set x = 1 %}{% endif %}{{ x }}
{% for i in l %}{% if i == 1 %}{% set x = 'in' %}{% endif %}{{ x }}{% endfor %}{{ x }}
{% set x = x + 1 %}{{ x }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (a, b) = (b, a) %}{{ a }}{{ b }}
{% set ns = namespace() %}{% set ns.a, q = 1, 2 %}{{ ns.a }}{{ q }}
{% set a, b = 1 %}
{% set q = 1, 2 %}{{ q }}
{% set q %}a{{ x }}b{% endset %}{{ q }}{{ q|length }}{% set q | upper | trim %} ab {% endset %}{{ q }}
{% set q %}{% set inner = 1 %}{% endset %}{{ inner is defined }}
{% with a = 1, b = x %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}{% with %}{% set z = 1 %}{{ z }}{% endwith %}{{ z is defined }}
{% with x = 1, y = x %}{{ x }}{{ y }}{% endwith %}
{% filter upper %}abc{{ s }}{% endfilter %}{% filter replace('a', 'b')|trim %} aa {% endfilter %}
{% generation %}{% set g = 1 %}a{{ g }}{% endgeneration %}{{ g is defined }}
{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }} {{ m(1, c=9) }} {{ m() }}|{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}{{ m }}
{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}{{ m() }}
{% macro m(a) %}{{ a is defined }}{{ a.b }}{% endmacro %}{{ m() }}
{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{% endmacro %}{{ m(b=2) }}
{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}
{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}hi {{ x }}{% endcall %}
{% macro m(l) %}{% for i in l %}{{ caller(i, loop.index) }}{% endfor %}{% endmacro %}{% call(a, b) m(l) %}({{ a }}{{ b }}){% endcall %}
{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}
{% macro m() %}x{% endmacro %}{% call m() %}hi{% endcall %}
{% macro m(caller=none) %}{{ caller }}{% endmacro %}{{ m() }}
{% macro m(a) %}{{ a }}{% if a > 0 %}{{ m(a - 1) }}{% endif %}{% endmacro %}{{ m(3) }}
{% macro outer() %}{% macro inner() %}i{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}{{ inner is defined }}
{% macro m() %}{% set x = 9 %}{{ x }}{% endmacro %}{{ m() }}{{ x }}
{% macro m(a, a2=nope) %}{{ a2 is defined }}{% endmacro %}{{ m(1) }}
{% set f2 = 'abc'.upper %}{{ f2() }}
{{ x() }}
{{ 'a'() }}
{{ n() }}
{{ raise_exception('boom') }}
{{ raise_exception() }}
{{ raise_exception(none) }}|
{{ strftime_now('%Y-%m-%d %H:%M:%S %A %a %B %b %d %j %y %p %I %% %U %W %V %u %w %G %e %-d %D %T %F %c %x %X %Z%z|%f %k %l %h %n%t %C %g %s %R %r %P %_d %^a %-H %-I %-j') }}
{{ strftime_now('%d %b %Y') }}
{{ strftime_now(5) }}
{{ joiner }}|{% set j = joiner('; ') %}{{ j() }}a{{ j() }}b{{ j() }}{% set c = cycler('x', 'y') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}
{{ cycler() }}
{# comment #}a{#- c -#} b {#+ x +#}c
{%- if true -%} a {%- endif -%} b
{% raw %}{{ x }}{% if %}{% endraw %}|{%- raw -%} {{ a }} {%- endraw -%} |
{{ '}}' }}{{ "{%" }}{{ {'a': {'b': 1}}['a']['b'] }}{{ {} }}{{ {'a':{}} }}
{{ x -}}   y {{- x }} {%+ if true %}a{% endif +%} b
{% if x == 1 %}a{% elif x == 5 %}b{% elif true %}c{% else %}d{% endif %}
{% if nope %}a{% else %}b{% endif %}{% if l and d and s %}c{% endif %}{% if [] or {} or '' or 0 or 0.0 %}d{% endif %}
{% print x %}{% print x, 'a' %}
{% if 1, 2 %}t{% endif %}{{ 1, 2 }}{{ 1, }}
{{ l[0],l[1] }} {{ d.b[0] }} {{ d["b"][1:][0] }} {{ (l)[0] }} {{ [1, 2,] }} {{ {'a': 1,} }} {{ (1, 2,) }}
{{ s|upper|lower|title|replace('H', 'h') }} {{ -5|abs }} {{ -x|string|length }} {{ not x|string == '5' }} {{ 'a' ~ 1 + 2 ~ 'b' }} {{ 1 ~ 2 }} {{ 1 + 2 ~ 3 }} {{ 2 * 3 ~ 4 }}
{{ 'a' ~ none ~ true ~ 1.0 ~ [1] ~ nope }}
{{ x.real }} {{ f.is_integer() }} {{ x.bit_length() }} {{ (5).numerator }}
{{ 1.0 }} {{ 1e100 }} {{ 1e15 }} {{ 1e16 }} {{ 123456789012345680.0 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1.5e300 * 1e10 }} {{ -0.0 }} {{ 5e-324 }}
{{ d == {'a': 1, 'b': [1, none, 1], 'c': {'k': 'v'}, 'items': 'shadow'} }} {{ [1, 2] == (1, 2) }} {{ 'a' == 1 }} {{ none == false }} {{ (1, [2]) == (1, [2.0]) }}
{{ {1: 'a', 1.0: 'b', true: 'c'} }} {{ {'a': 1, 'a': 2} }} {{ {(1, 2): 3}[1, 2] }}
{{ {[1]: 2} }}
{{ users[0].name ~ users[-1]['name'] }} {{ users|length }} {{ users[0].tags.x }} {{ users[1].tags.x }}
{{ (users|map(attribute='name')|join(','))|lower }} {{ users|map(attribute='age')|sum }} {{ users|map(attribute='age')|map('string')|join('') }}
{{ [1, 2, 3]|map('string')|map('length')|list }} {{ l|map('abs')|sort|first }} {{ (1, 2)|tojson|length }}
{{ l is iterable and l is not string and l is not mapping }} {{ s is iterable and s is not mapping }}
{{ 5 is number and 5 is not string }} {{ x is in [1, 5] }} {{ 'a' is in 'abc' }} {{ x is not in [1] }}
{{ s.split(' ')[0].upper()[::-1] }} {{ s.split()|map('capitalize')|join(' ') }} {{ 'a=b'.split('=')|last }} {{ '<think>x</think>y'.split('</think>')[-1].lstrip('\n') }}
{{ '%02d:%02d' % (5, 7) }} {{ '%s' % true }} {{ '%5s|%-5s|' % ('a', 'b') }} {{ '%.1f%%' % 99.5 }} {{ '%r' % [1.0] }} {{ '%s and %s' % ('a', l) }}
{{ loop|default('none') }} {{ caller is defined }}
{{ namespace }}
{{ 'é'|urlencode }} {{ 'a+b'|urlencode }} {{ '~._-'|urlencode }}
{{ 'x' if nope else nope }} {{ (nope or 'a') }} {{ (n or {}).get('a', 'z') }} {{ (d.zz or []) | length }}
{% set content = d.c if d.c is mapping else '' %}{{ content }} {% set z = [] %}{% for i in l %}{% set z = z + [i] %}{% endfor %}{{ z }}
{% set ns = namespace(found=false, items=[]) %}{% for u in users %}{% if u.age == 3 and not ns.found %}{% set ns.found = true %}{% set ns.items = ns.items + [u.name] %}{% endif %}{% endfor %}{{ ns.items }}{{ ns.found }}
{% for u in users -%} {{ loop.index }}. {{ u.name }}{{ ", " if not loop.last }} {%- endfor %}
{%- for i in range(3) %}{{ i }}{% for j in range(2) %}{{ loop.index }}{% if loop.last %};{% endif %}{% endfor %}{{ loop.index }}{% endfor %}
{% for i in l %}{% for j in l if j > i %}{{ i }}{{ j }} {% endfor %}{% endfor %}
{% for i in l %}{% set i = i + 1 %}{{ i }}{% endfor %}
{% for x in l if x != x %}{{ x }}{% else %}{{ x }}{% endfor %}
{% for key in d|sort %}{{ key }}{% endfor %}{% for i in (1, 2) %}{{ i }}{% endfor %}{% for i in 1, 2 %}{{ i }}{% endfor %}
{{ ''.join(['a', nope]) }}
{{ 'a'.join(n) }}
{{ s.nope() }}
{{ d.nope() }}
{{ d.items.foo }}
{{ users[5].name }}
{{ users.name }}|{{ users.name.first }}
{{ l.foo.bar }}
{{ (1, 2).foo.bar }}
{{ range(3).foo.bar }}
{{ f.foo.bar }}
{{ t.foo.bar }}
{{ d.keys().foo.bar }}
{{ range.foo.bar }}
{{ loop.foo.bar }}
{% for i in l %}{{ loop.foo.bar }}{% endfor %}
{% macro m() %}{% endmacro %}{{ m.foo.bar }}
{% for i in l %}{{ loop.cycle() }}{% endfor %}
{{ 'a'.format.__class__ }}|
{{ '{:>{}}'.format('a', 5) }} {{ '{!r:>6}'.format('a') }} {{ '{a}{b}'.format(**{'a': 1, 'b': 2}) }} {{ '{}{}'.format(*[1, 2]) }}
{{ '{:,.2f} {:+.1e} {:<10}| {:=+6} {: d} {:o} {:X} {:#b} {:.0f} {:g} {:G} {:n}'.format(1234567.891, 0.00012, 1.5, 7, 3, 8, 255, 5, 2.5, 1e-10, 1e20, 5) }}
{{ '{} {} {} {}'.format(none, true, 1.0, [1]) }} {{ '{:5}|{:<5}|{:5}|'.format(true, false, 'a') }} {{ '{:.1%}'.format(0.256) }}
{{ 1 if true else 2 ~ 'a' }} {{ (1 if true else 2) ~ 'a' }} {{ 'a' if 0 else 'b' if 0 else 'c' }}
{{ 10 - 2 - 3 }} {{ 100 / 10 / 2 }} {{ 2 + 3 * 4 ** 2 }} {{ 7 // 2 * 2 }} {{ -3 % 2 }} {{ (1 + 2) * 3 }}
{{ 1 is defined }} {{ none is defined }} {{ d.a is defined and d.z is not defined }} {{ d['a'] is defined }} {{ users[0].nope.x is defined }}
{{ 3|string|int + 2 }} {{ '3' * 2 }} {{ '3'|int * 2 }} {{ 1|float }} {{ 7|float / 2 }}
{{ 'a\r\nb' }}|{{ 'a\\nb' }}|{{ "tab\there" }}|{{ 'nul\0x' }}|{{ '\'' }}|{{ "\"" }}
{{ 'ß'.lower() }} {{ 'İ'.lower()|length }} {{ 'ŉ'.upper() }} {{ 'ß'.title() }} {{ 'hello ßtraße'.title() }} {{ 'x1y a.b'.title() }} {{ 'ΑΣ ΑΣ'.lower() }} {{ 'ǅ'.swapcase() }}
{{ 1 .__class__ }}|
{{ l|tojson|safe }} {{ {'a': '<b>'}|tojson|safe }} {{ '<' ~ ('<'|e) }}
{{ ('ab'|safe)|list }} {{ ('ab'|safe)|last is escaped }} {{ false / -1 }} {{ '{: }'.format('a') }} {{ l|round(0, 'floor') }} {{ nope|round }} {{ dict(nope) }} {{ l|sort(reverse='a') }} {{ l|sort(reverse=nope) }}
{{ l|indent }} {{ (1, 2)|indent }} {{ 1|truncate }} {{ l|truncate(nope) }} {{ '11'|int(base=1) }} {{ '11'|int(base=99) }} {{ d|tojson(indent=nope) }} {{ d|tojson(indent=l) }} {{ '%(a)s' % nope }} {{ 'abc' % nope }} {{ '%x' % nope }} {{ '%d' % nope }}
{{ nope.__class__ }} {{ nope[s] }} {{ l[1, 2,] }} {{ l[, 1] }} {{ l[] }} {{ x|map('nope')|list }} {{ []|map('nope')|list }} {{ []|select('nope')|list }} {{ 'a'.rpartition() }} {{ [1.5, n, true]|sort(reverse=true) }}
{% for a, in [(1,)] %}{{ a }}{% endfor %}
{{ '{0}{}'.format(1, 2) }} {{ '{}{0}'.format(1, 2) }} {{ '{a}{}'.format(1, a=2) }} {{ '{a.b.c[0]}'.format(a={'b': {'c': [7]}}) }} {{ '{:>08.2f}'.format(2.5) }} {{ '{:08,.1f}'.format(1234.5) }} {{ '{:=^+9}'.format(5) }}
{{ (1,2)|join('-') }} {{ [[1, 2], [3]]|map('join', '.')|join('|') }} {{ [[3, 1], [2]]|map('sort')|list }} {{ [{'a': 1}]|map('tojson')|join }} {{ ['1', '2']|map('int')|sum }} {{ [' a ']|map('trim')|list }}
{{ l|map('default', 5)|list }} {{ [nope, 1]|map('default', 5)|list }} {{ users|map(attribute='ok')|list }} {{ users|map(attribute='ok')|select('defined')|list }}
""".strip("\n").split("\n")

LONG = [
    "a\r\nb\rc\n",
    "a\n\n",
    "  {% if true %}\n  x\n  {% endif %}\n  y",
    "  {%+ if true %}\n  x\n  {%- endif %}\n  y",
    "a  {% if true %}  \n b {% endif %}\n\n c",
    "{% for i in l %}\n  {{ i }}\n{% endfor %}\nend\n",
    "  {# c #}\n  a {# d #}\nb\n   {#- e #}\n  c",
    "\n{%- set q = 1 -%}\n\n  {{ q }}\n",
    "{% raw %}\n  {{ x }}\n{% endraw %}\n  a",
    "  {% raw %} {% x %} {% endraw %}\n b",
    "  {{ x }}\n  {{- x }}\n  {{ x -}}\n  z",
    "{{ 'a\nb' }}{{ '''x''' }}",
    "\t{% if true %}\tx{% endif %}\t\n",
    "\u00a0 {% if true %}x{% endif %}\u3000{%- if true %}y{% endif %}",
    "{% set q %}\n  a\n{% endset %}[{{ q }}]",
    "{%- macro m(a) -%}\n  {{ a }}\n{%- endmacro -%}\n[{{ m('x') }}]",
    "{% if true %}a{% endif +%}\nb{% if true -%}\n c{% endif %}\n",
    "x{% generation %}\n  y\n{% endgeneration %}\nz",
    "{{ {\n 'a': 1,\n 'b': [1,\n 2] } }}\n{{\nx\n}}",
    "line {{ x }}\n{% if x %}\n{% elif y %}\n{% else %}\n{% endif %}\ntail",
    "{%\nif x\n%}a{%\nendif\n%}",
    "{# multi\nline #}\n\nb",
    "{% filter upper %}\na\n{% endfilter %}\nb",
    "{{ '{' }}{{ '}' }}",
]


class Generation(ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("run"), [], [], body).set_lineno(line)

    def run(self, caller):
        return caller()


def _compile_jinja_template():  # the name that stands in transformers' messages
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(format):
        return datetime.datetime(2024, 2, 9, 7, 5, 3, tzinfo=None).strftime(format)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


def main():
    env = _compile_jinja_template()
    print(json.dumps({"vars": VARS}, ensure_ascii=False))
    # several expressions in a line are as many templates, for one may fail
    lines = [part for line in LINES for part in ([line] if "{%" in line else re.split(r"(?<=\}\}) (?=\{\{)", line))]
    for src in lines + LONG:
        row = {"src": src}
        try:
            row["text"] = env.from_string(src).render(**json.loads(json.dumps(VARS)))  # a copy: filters may change lists
        except Exception as e:
            row["error"] = f"{type(e).__name__}: {e}"
        print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main()
