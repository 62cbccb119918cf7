"""Lessons: every one is played, told step by step, asked about, and ends with a riddle."""

import pytest
from browser import served, shows, until
from pictures import picture
from test_fits import fits

from meshlock.errors import Refused
from meshlock.web import lessons
from meshlock.web.opening import Shelf
from meshlock.web.server import Desk, application

MINE = """# Two take turns

Both want in.

```scenario
nodes 2
permits 1
algorithm raymond
request 0
```

Node 0 is inside, and *node 1* asks, `so`:

- [ ] it enters
- [x] it **waits**

> There is one permit.

```scenario
request 1
leave 0
settle
expect inside 1
```

Now node 1 is inside. <img src=x onerror="window.broken=1">
"""


def test_there_are_ten_and_each_is_as_it_says():
    told = [lessons.lesson(name) for name in lessons.names()]
    assert len(told) == 10 and [each.title for each in told] == [*lessons.titles().values()]
    for each in told:
        steps = [step for step, _ in each.parts]
        assert len(steps) >= 5 and steps == sorted(steps) and steps[-1] <= each.index.steps
        text = "\n".join(text for _, text in each.parts)
        assert text.count("- [ ]") == 2 * text.count("- [x]") > 0
    with_riddles = ["riddle:" in each.parts[-1][1] for each in told]
    assert with_riddles == [True] * 9 + [False]  # none is about recovery


def test_text_is_told_where_its_block_ends():
    told = lessons.Lesson("mine", MINE)
    assert told.title == "Two take turns"
    assert [step for step, _ in told.parts] == [0, 1, 5]
    assert told.shown()["parts"][0] == (0, "Both want in.")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("```scenario", "```text"), "has no block that begins with"),
        (("expect inside 1", "expect inside 0"), "expects what does not happen: inside 0"),
        (("leave 0", "leav 0"), "line 21: cannot do 'leav 0'"),
        (("Now node 1", "[x](riddle:raymond/nothing) Now node 1"), "'raymond/nothing' is no rid"),
    ],
)
def test_what_is_wrong_with_a_lesson_is_said(change, why):
    with pytest.raises(Refused, match=why):
        lessons.Lesson("mine", MINE.replace(*change))


def test_a_lesson_of_ones_own_is_opened_by_its_path(tmp_path):
    path = tmp_path / "my.md"
    path.write_text(MINE)
    shelf = Shelf()
    shelf.add_lesson("lesson:my", lessons.lesson(str(path)))
    assert shelf.runs["lesson:my"].steps == 6
    with pytest.raises(Refused, match="There is no lesson 'nothing'"):
        lessons.lesson("nothing")


@pytest.fixture
def page(browser):
    with served(application(Desk())) as address:
        page = browser.new_page(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
        page.goto(f"{address}#run=lesson:02-raymond:")
        until(page, "window.meshlock?.run?.about.lesson && meshlock.shown === 0")
        yield page
        page.close()


def part(page, number):
    until(page, f"meshlock.lesson.place === {number} && !meshlock.dirty")


def test_a_lesson_is_told_asked_about_and_ends_with_a_riddle(page):
    shows(page, "h1", "Raymond's tree")
    shows(page, "#pane-lesson", "How does a request find the token?")
    page.keyboard.press("PageDown")
    part(page, 1)
    for number in (2, 3, 4):
        page.click("#lesson-next")
        part(page, number)
    until(page, "meshlock.shown === 3")
    assert "Each arrow points" not in page.inner_text("#pane-lesson")
    page.get_by_role("button", name="to node 3").click()
    until(page, "document.querySelector('.answers .not')")
    page.get_by_role("button", name="to node 1").click()
    shows(page, "#pane-lesson .because", "Each arrow points to the neighbour")
    picture(page, "lesson")
    page.keyboard.press("PageUp")
    part(page, 3)
    until(page, "meshlock.shown === 2")
    page.evaluate("meshlock.lesson.turn(99)")
    part(page, page.evaluate("meshlock.lesson.lesson.parts.length - 1"))
    page.get_by_role("button", name="Find the schedule").click()
    until(page, "meshlock.run.about.riddle && meshlock.shown === 0")


def test_in_a_presentation_the_caption_tells_the_lesson(page):
    page.keyboard.press("f")
    shows(page, "#caption", "How does a request find the token?")
    page.keyboard.press("PageDown")
    part(page, 1)
    shows(page, "#caption", "one pointer, its father (the arrows)")
    page.keyboard.press(".")
    until(page, "getComputedStyle(document.body).visibility === 'hidden'")
    page.keyboard.press(".")
    until(page, "getComputedStyle(document.body).visibility === 'visible'")


def test_a_file_from_the_disk_is_told_as_text(page, tmp_path):
    path = tmp_path / "mine.md"
    path.write_text(MINE)
    page.set_input_files("#file", path)
    until(page, "meshlock.run.about.lesson?.title === 'Two take turns'")
    page.evaluate("meshlock.lesson.turn(2)")
    shows(page, "#pane-lesson", "<img src=x")
    assert page.evaluate("window.broken") is None
    assert page.locator("#pane-lesson img").count() == 0


@pytest.mark.parametrize("size", [(1400, 900), (1024, 768), (390, 844)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lessons_fit(browser, size, scheme):
    wide, high = size
    viewport = {"width": wide, "height": high}
    with served(application(Desk())) as address:
        page = browser.new_page(viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
        for name in ("04-general-scheme", "10-leases"):
            page.goto(f"{address}#run=lesson:{name}:")
            until(page, f"window.meshlock?.run?.name === 'lesson:{name}' && meshlock.shown === 0")
            for number in range(page.evaluate("meshlock.lesson.lesson.parts.length")):
                page.evaluate(f"meshlock.lesson.turn({number} - meshlock.lesson.place)")
                part(page, number)
                fits(page, f"{wide} x {high}, {scheme}, {name}, part {number + 1}")
        page.close()


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "noise.md").write_bytes(bytes(range(128, 256)))
    with pytest.raises(Refused, match="is not a text: name a lesson"):
        lessons.lesson(str(tmp_path / "noise.md"))
