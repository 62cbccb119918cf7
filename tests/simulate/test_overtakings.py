"""How many went before somebody more urgent, against counting them one by one."""

from random import Random

from meshlock.simulate.measures import Overtakings


def test_the_count_is_that_of_a_plain_search():
    draw = Random(1)
    counted, waiting, pairs = Overtakings(), [], 0
    for _ in range(20_000):
        if draw.random() < 0.55 or not waiting:
            rank = float(draw.choice([draw.randint(0, 9), draw.randint(0, 10**6)]))
            counted.asks(rank)
            waiting.append(rank)
        else:
            rank = waiting.pop(draw.randrange(len(waiting)))
            pairs += sum(other > rank for other in waiting)
            counted.enters(rank)
    assert counted.pairs == pairs
    assert sorted(waiting) == counted.ranks
