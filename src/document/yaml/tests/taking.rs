//! What edits write that remove, append, move or replace a collection.

use super::*;

#[test]
fn what_is_removed_takes_its_line_and_no_comment_of_its_own_line() {
    check(&[
        (
            "a: 1\n# own\nb: 2 # c\n# two\nc: 3\n",
            remove("b"),
            "a: 1\n# own\n# two\nc: 3\n",
        ),
        (
            "a:\n  # note\n  b: 1 # c\n  # end\nx: 1\n",
            remove("a.b"),
            "a: {}\n  # note\n  # end\nx: 1\n",
        ),
        ("a: # k\n  b: 1\nx: 1\n", remove("a.b"), "a: {} # k\nx: 1\n"),
        ("a:\n- 1\n- 2\n", remove("a[0]"), "a:\n- 2\n"),
        ("a:\n- 1\n", remove("a[0]"), "a: []\n"),
        (
            "a:\n  - b: 1\n    c: 2\n",
            remove("a[0].b"),
            "a:\n  - c: 2\n",
        ),
        (
            "a:\n  - b: 1 # x\n    # own\n    c: 2\n",
            remove("a[0].b"),
            "a:\n  -\n    # own\n    c: 2\n",
        ),
        ("a:\n  - b: 1\n", remove("a[0].b"), "a:\n  - {}\n"),
        ("a:\n  - - 1\n    - 2\n", remove("a[0][0]"), "a:\n  - - 2\n"),
        ("a:\n  - - 1\n", remove("a[0][0]"), "a:\n  - []\n"),
        ("a:\n  -\n    b: 1\n", remove("a[0].b"), "a:\n  - {}\n"),
        ("a: 1\n", remove("a"), "{}\n"),
        ("# h\na:\n  b: 1\n# t\n", remove("a"), "# h\n{}\n# t\n"),
        ("a: [1, 2, 3]\n", remove("a[0]"), "a: [2, 3]\n"),
        ("a: [1, 2, 3]\n", remove("a[2]"), "a: [1, 2]\n"),
        ("a: [1, 2,]\n", remove("a[1]"), "a: [1,]\n"),
        ("a: [1]\n", remove("a[0]"), "a: []\n"),
        ("a: { b: 1 }\n", remove("a.b"), "a: {}\n"),
        ("a: {b: 1, c: 2}\n", remove("a.b"), "a: {c: 2}\n"),
        (
            "a: {\n  b: 1, # x\n  # own\n  c: 2\n}\n",
            remove("a.b"),
            "a: {\n  # own\n  c: 2\n}\n",
        ),
        (
            "a: {\n  b: 1,\n  # own\n  c: 2 # x\n}\n",
            remove("a.c"),
            "a: {\n  b: 1,\n  # own\n}\n",
        ),
        ("a: |\n  x\n\nb: 1\n", remove("a"), "\nb: 1\n"),
        ("a: |+\n  x\n\nb: 1\n", remove("a"), "b: 1\n"),
        (
            "a: 1\nb:\n  c:\n    d: 1\n\n# e\n",
            remove("b.c"),
            "a: 1\nb: {}\n\n# e\n",
        ),
        (
            "a: one\n  two\nb: >\n  x\n  # no comment\nc: 1\n",
            remove("b"),
            "a: one\n  two\nc: 1\n",
        ),
        ("a: &x\n  b: 1\n", remove("a.b"), "a: &x {}\n"),
        ("? a\n: 1\nb: 2\n", remove("a"), "b: 2\n"),
    ]);
}

#[test]
fn an_item_is_added_as_the_list_is_written() {
    check(&[
        (
            "a:\n- 1\n# c\nb: 1\n",
            append("a", "2"),
            "a:\n- 1\n- 2\n# c\nb: 1\n",
        ),
        (
            "a:\n    - 1 # c\n",
            append("a", "{\"x\":1,\"w\":[2]}"),
            "a:\n    - 1 # c\n    - x: 1\n      w:\n          - 2\n",
        ),
        ("a: [1]\n", append("a", "\"b c\""), "a: [1, b c]\n"),
        ("a: ['x']\n", append("a", "\"w\""), "a: ['x', 'w']\n"),
        ("a: []\n", append("a", "\"w\""), "a: [w]\n"),
        (
            "a: [] # c\n",
            append("a", "{\"x\":1}"),
            "a: # c\n  - x: 1\n",
        ),
        ("a:\nb: 1\n", append("a", "1"), "a:\n  - 1\nb: 1\n"),
        ("b: 1\n", append("a.c", "1"), "b: 1\na:\n  c:\n    - 1\n"),
        (
            "a: [\n  x,\n  w\n]\n",
            append("a", "\"z\""),
            "a: [\n  x,\n  w,\n  z\n]\n",
        ),
        ("a:\n- - 1\n", append("a[0]", "2"), "a:\n- - 1\n  - 2\n"),
    ]);
}

#[test]
fn what_moves_takes_its_comments_along() {
    check(&[
        ("a: 1 # c\nb: 2\n", moved("a", "x"), "x: 1 # c\nb: 2\n"),
        ("'a': {b: 1}\n", moved("a.b", "a.c"), "'a': {c: 1}\n"),
        (
            "a:\n  b: 1 # c\n  d: 2\n",
            moved("a.b", "x.w"),
            "a:\n  d: 2\nx:\n  w: 1 # c\n",
        ),
        (
            "o:\n    # above\n    t: # side\n        # in\n        x: 1 # one\n\n        w: |\n            text\n              more\n    k: 1\nd:\n    p: 1\n",
            moved("o.t", "d.q.t"),
            "o:\n    # above\n    k: 1\nd:\n    p: 1\n    q:\n        t: # side\n            # in\n            x: 1 # one\n\n            w: |\n                text\n                  more\n",
        ),
        (
            "a:\n  b:\n    c: [1, # x\n      2]\n",
            moved("a.b", "b"),
            "a: {}\nb:\n  c: [1, # x\n    2]\n",
        ),
        (
            "l:\n- name: x # m\n  url: w\n- 2\nm: {}\n",
            moved("l[0]", "m.x"),
            "l:\n- 2\nm:\n  x:\n    name: x # m\n    url: w\n",
        ),
        (
            "l:\n- 5 # m\n- 2\nm:\n",
            moved("l[0]", "m.x"),
            "l:\n- 2\nm:\n  x: 5 # m\n",
        ),
        (
            "a: {b: {c: 1}, d: 2}\n",
            moved("a.b", "x.w"),
            "a: {d: 2}\nx:\n  w:\n    c: 1\n",
        ),
        (
            "a:\n  b:\n  - 1\n  - 2\n",
            moved("a.b", "c"),
            "a: {}\nc:\n- 1\n- 2\n",
        ),
        (
            "s:\n  model: m\n  provider: p\n",
            moved("s.model", "s.p.model"),
            "s:\n  provider: p\n  p:\n    model: m\n",
        ),
        (
            "s:\n  model: m\n",
            moved("s.model", "s.p.model"),
            "s:\n  p:\n    model: m\n",
        ),
    ]);
    refused("a: 1\nb: 2\n", &moved("a", "b"));
    refused("a:\n  b: 1\n", &moved("a", "a.c"));
    refused("a: &x 1\nb: *x\n", &moved("a", "c"));
}

#[test]
fn a_collection_is_replaced_by_another() {
    check(&[
        (
            "a:\n  - name: x\n  - name: w # c\nb: 1\n",
            set("a", "{\"x\":{\"u\":1}}"),
            "a:\n  x:\n    u: 1\nb: 1\n",
        ),
        ("a:\n  b: 1\n  c: 2\n", set("a", "5"), "a: 5\n"),
        ("a: # k\n  b: 1\n", set("a", "[]"), "a: [] # k\n"),
        (
            "a: 5 # c\nb: 1\n",
            set("a", "{\"x\":1}"),
            "a: # c\n  x: 1\nb: 1\n",
        ),
        (
            "a:\n- b: 1\n  c: 2 # x\n- 2\n",
            set("a[0]", "5"),
            "a:\n- 5\n- 2\n",
        ),
        (
            "a:\n- 5 # c\n- 2\n",
            set("a[0]", "{\"x\":1,\"w\":2}"),
            "a:\n- x: 1 # c\n  w: 2\n- 2\n",
        ),
        ("a: [1, 2]\n", set("a", "[3]"), "a: [3]\n"),
        (
            "a: |\n  x\n  w\nb: 1\n",
            set("a", "[3]"),
            "a:\n  - 3\nb: 1\n",
        ),
        (
            "a:\n- |\n  x\n- 2\n",
            set("a[0]", "{\"x\":1,\"w\":2}"),
            "a:\n- x: 1\n  w: 2\n- 2\n",
        ),
        (
            "a: one\n  two # c\nb: 1\n",
            set("a", "[3]"),
            "a: # c\n  - 3\nb: 1\n",
        ),
    ]);
}

#[test]
fn a_key_that_begins_with_a_colon_follows_one_without_a_value() {
    check(&[
        ("? k\n:: e\n", set(":", "1"), "? k\n:: 1\n"),
        ("? k\n:: e\n", remove("k"), ":: e\n"),
        ("? k\n:: e\n", remove(":"), "? k\n"),
        (
            "? +R[ [x, \"]\n:: e}",
            moved(":", "new"),
            "? +R[ [x, \"]\nnew: e}",
        ),
    ]);
    refused("? k\n:: e\n", &set("k", "1"));
}
