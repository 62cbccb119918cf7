"""Who had a way to a majority for long enough: three members and a bystander, by hand."""

from meshlock.properties.paths import DOWN, Paths, labelled

TOGETHER = (0, 0, 0, 0)
BYSTANDER_AWAY = (0, 0, 0, 3)
ONE_AWAY = (0, 0, 2, 0)
TWO_AWAY = (0, 1, 1, 0)
ALL_APART = (0, 1, 2, 3)


def paths(*parts):
    """Recovering takes 10, those ahead take 1."""
    known = Paths((0, 1, 2), 10.0, 1.0)
    for time, part in parts:
        known.record(time, part)
    return known


def test_long_enough_is_longer_than_recovery_and_the_queue():
    known = paths((0.0, TOGETHER))
    assert not known.had_path(0, 5.0, 16.0)
    assert known.had_path(0, 5.0, 16.5)


def test_only_the_time_since_it_asked_counts():
    known = paths((0.0, TOGETHER), (20.0, ALL_APART))
    assert known.had_path(0, 5.0, 99.0)
    assert not known.had_path(0, 10.0, 99.0)


def test_a_minority_is_not_enough_however_long():
    known = paths((0.0, TWO_AWAY))
    assert not known.had_path(0, 0.0, 999.0)
    assert known.had_path(1, 0.0, 999.0)


def test_the_interval_may_begin_late():
    known = paths((0.0, ALL_APART), (100.0, ONE_AWAY), (112.0, ALL_APART))
    assert known.had_path(0, 0.0, 999.0)
    assert known.had_path(3, 0.0, 999.0)  # no member, but connected with two
    assert not known.had_path(2, 0.0, 999.0)


def test_it_must_be_one_majority_all_the_time():
    changing = [(6.0 * i, ONE_AWAY if i % 2 else (0, 1, 0, 0)) for i in range(40)]
    assert not paths(*changing).had_path(0, 0.0, 240.0)


def test_whoever_comes_and_goes_costs_one_recovery_each_time():
    known = paths((0.0, TOGETHER), (5.0, BYSTANDER_AWAY), (8.0, TOGETHER))
    assert not known.had_path(0, 0.0, 19.0)  # 11 since the last change
    assert known.had_path(0, 0.0, 19.5)
    fidgeting = [(5.0 * i, BYSTANDER_AWAY if i % 2 else TOGETHER) for i in range(40)]
    assert not paths(*fidgeting).had_path(0, 0.0, 200.0)
    slower = [(15.0 * i, BYSTANDER_AWAY if i % 2 else TOGETHER) for i in range(40)]
    assert paths(*slower).had_path(0, 0.0, 200.0)


def test_a_node_that_is_down_reaches_nobody():
    known = paths((0.0, (0, 0, 0, DOWN)))
    assert not known.had_path(3, 0.0, 999.0)


def test_two_changes_at_one_time_are_one():
    known = paths((0.0, TOGETHER), (5.0, ALL_APART), (5.0, TOGETHER))
    assert known.had_path(0, 0.0, 11.5)


def test_nodes_that_are_down_pass_nothing_on():
    near = [{1}, {0, 2}, {1}]
    assert labelled(near, [True, True, True]) == (0, 0, 0)
    assert labelled(near, [True, False, True]) == (0, DOWN, 2)
