"""An agent's own page: locked without the bearer token; with it, the whole mesh."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager

from browser import holds, shows, until
from pictures import picture, wanted

import meshlock
from meshlock.live.chaos.relay import Relay
from meshlock.live.interfaces.http import Interface
from meshlock.live.interfaces.serving import serving_port
from meshlock.live.links.dialler import split
from meshlock.web.live import LivePage, PageRequests, view
from ports import free_port
from waiting import LIMIT, eventually, run, sooner_or_later

TOKEN = "a token that nobody guesses"
NAMES = ["crane", "gate", "dock", "truck"]
BAYS = ["east", "west"]
DEAD = 1.0
LEASE = 3.0
"""By the patient clock of the nodes: no link and no lease fails by a busy machine."""


class Mesh:
    """Four nodes in a row, in a thread of their own; `gate` has the page."""

    def __init__(self, allowed, leases):
        self.address = f"127.0.0.1:{free_port()}"
        self.page = f"http://{self.address}/"
        self.allowed = allowed
        self.leases = leases
        self.ready, self.over = threading.Event(), threading.Event()
        self.nodes, self.relays = {}, []

    async def live(self):
        self.loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            address = None
            for name in NAMES:
                peers = []
                if address:
                    relay = await Relay(*split(address)).start()
                    stack.push_async_callback(relay.close)
                    self.relays.append(relay)
                    peers = [relay.address]
                self.nodes[name] = node = meshlock.Node(name, peers=peers, dead=DEAD, min_links=0)
                await node.start()
                stack.push_async_callback(node._local.vanish)
                address = node.address
            docks = [
                node.pool("docks", 3 if name == "crane" else None, recovery="none")
                for name, node in self.nodes.items()
            ]
            kept = await docks[3].acquire(1, priority=7, label="the last mile")
            if self.leases:
                bays = [
                    self.nodes[name].pool("bays", BAYS, members=NAMES[1:], lease=LEASE)
                    for name in NAMES[1:]
                ]
                leased = await bays[0].acquire(1, priority=3, timeout=LIMIT, label="unloading")
                waits = asyncio.ensure_future(bays[2].acquire(2, label="parking"))
            interface, page = Interface(self.nodes["gate"]), LivePage(self.allowed)
            await stack.enter_async_context(
                serving_port(interface, self.address, TOKEN, page.routes)
            )
            busy = asyncio.gather(*[self.work(docks[i], 2) for i in (0, 2)])
            self.ready.set()
            while not self.over.is_set():
                await asyncio.sleep(0.01)
            busy.cancel()
            kept.release()
            if self.leases:
                waits.cancel()
                leased.release()

    async def work(self, pool, want):
        """Two that want two of the two permits that are left: one of them waits."""
        while True:
            async with pool.acquire(want):
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.02)

    def cut(self, link, whole=False):
        relay = self.relays[link]
        self.loop.call_soon_threadsafe(relay.heal if whole else relay.cut)


@contextmanager
def running(allowed, leases=False):
    mesh = Mesh(allowed, leases)
    thread = threading.Thread(target=run, args=(mesh.live,), daemon=True)
    thread.start()
    assert mesh.ready.wait(LIMIT)
    try:
        yield mesh
    finally:
        mesh.over.set()
        thread.join(LIMIT)


def wrong(said):
    """Answers such as 401 and 400 are no errors of the page."""
    return said.type == "error" and "Failed to load resource" not in said.text


@contextmanager
def opened(browser, mesh, **options):
    """The page with its token given; it must not fail."""
    page = browser.new_page(**({"viewport": {"width": 1180, "height": 1000}} | options))
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if wrong(said) else None)
    page.goto(mesh.page)
    until(page, "!document.getElementById('enter').hidden")
    page.fill("#token", TOKEN)
    page.keyboard.press("Enter")
    until(page, "!document.getElementById('shown').hidden")
    try:
        yield page
        assert not errors
    finally:
        page.close()


CALM = (
    "[...document.querySelectorAll('#verdict span')]"
    ".every((alarm) => alarm.textContent.includes('is a single point of failure'))"
)
"""Nothing is wrong; but of four nodes in a row two part the others if they fail, which is said."""


def table(page, element):
    """Its rows, by heading."""
    columns = page.locator(f"#{element} th").all_text_contents()
    rows = page.inner_text(f"#{element} tbody").split("\n")
    return [dict(zip(columns, row.split("\t"), strict=True)) for row in rows]


def text_of(element):
    return f"document.getElementById('{element}').textContent"


def test_nothing_without_the_token(browser):
    with running(False) as mesh:
        page = browser.new_page()
        page.goto(mesh.page)
        until(page, "!document.getElementById('enter').hidden")
        assert "docks" not in page.content()
        page.fill("#token", "wrong")
        page.keyboard.press("Enter")
        until(page, f"{text_of('subtitle')}.includes('is wrong')")
        assert page.locator("#map g").count() == 0
        page.close()


def test_the_whole_mesh_is_shown_and_so_is_what_is_cut_off(browser):
    with running(False) as mesh, opened(browser, mesh) as page:
        until(page, f"{text_of('where')}.includes('truck 1')")
        shows(page, "h1", "gate · docks")
        shows(page, "#mode", "read-only")
        assert page.locator("#asking").is_hidden() and page.locator("#links button").count() == 0
        shows(page, "#subtitle", "4 nodes known")
        names = page.locator("#map .name")
        holds(page, lambda: sorted(names.all_text_contents()) == sorted(NAMES))
        until(page, "document.querySelectorAll('#map line').length === 3")
        holds(page, lambda: page.locator("#map line.down").count() == 0)
        until(page, "document.querySelectorAll('#map .token').length === 1")
        until(page, f"Number({text_of('rate')}) > 1")
        until(page, "document.getElementById('grants').textContent.includes('the last mile')")
        mine = next(row for row in table(page, "grants") if row["node"] == "truck")
        assert (mine["label"], mine["permits"]) == ("the last mile", "1")
        assert mine["priority"] == "7" and int(mine["fence"]) >= 1
        assert mine["for"].endswith(" s") and mine["last seen, ago"].endswith(" s")

        def away():
            rows = [row.split("\t") for row in page.inner_text("#nodes tbody").split("\n")]
            return {row[0]: row[1] for row in rows}

        holds(page, lambda: away() == {"crane": "1", "gate": "0", "dock": "1", "truck": "2"})
        until(page, CALM)

        mesh.cut(1)  # between gate and dock
        until(page, "document.querySelectorAll('#map .gone').length === 2")
        until(page, f"{text_of('verdict')}.includes('dock and truck unreachable')")
        until(page, "document.querySelectorAll('#map line.down').length === 1")
        shows(page, "#nodes tbody", "unreachable")
        until(page, f"{text_of('verdict')}.includes('The link to dock is down')")
        page.wait_for_timeout(3500 if wanted() else 0)
        picture(page, "live-cut")
        mesh.cut(1, whole=True)
        until(page, "document.querySelectorAll('#map .gone').length === 0")
        until(page, CALM)
        page.wait_for_timeout(9000 if wanted() else 0)
        picture(page, "live")


def test_leases_and_the_loss_of_the_majority_are_shown(browser):
    with running(False, leases=True) as mesh, opened(browser, mesh) as page:
        page.select_option("#pool", "bays")
        until(page, f"{text_of('title')} === 'gate · bays'")
        until(page, f"{text_of('grants')}.includes('s left')")
        [row] = table(page, "grants")
        held = next(iter(mesh.nodes["gate"]._local.pools["bays"].adapter.clients.values())).grant
        assert (row["node"], row["permits"], row["slots"]) == ("gate", "1", "east")
        assert (row["label"], row["priority"]) == ("unloading", "3")
        assert row["fence"] == str(held.fence) and held.fence < 2**53  # to the last digit
        assert 0 < float(row["lease"].split()[0]) <= LEASE
        until(page, f"{text_of('waiting')}.includes('parking')")
        [first] = table(page, "waiting")
        assert (first["node"], first["label"], first["permits"]) == ("truck", "parking", "2")
        shows(page, "#where", "1 of 2 held (gate 1), 1 free.")
        used = page.locator("#permits .used")
        holds(page, lambda: used.get_attribute("title") == "unloading")
        shows(page, "#subtitle", "epoch")
        until(page, f"{text_of('reasons')}.includes('truck waits: ')")
        until(page, "document.querySelectorAll('#map .tip').length >= 1")  # truck knows it at least
        until(page, CALM)
        mesh.cut(1)  # gate is alone with crane, which is no member
        until(page, f"{text_of('verdict')}.includes('Quorum lost: gate cannot reach 2 of the 3')")
        until(page, f"!{text_of('grants')}.includes('gate')")  # the lease ran out
        lost = "permits unknown: quorum lost: 1 of 3 members reachable"
        until(page, f"{text_of('where')}.includes('{lost}')")
        holds(page, lambda: page.locator("#permits .used").count() == 0)


def test_permits_and_links_can_be_asked_for_where_that_is_allowed(browser):
    with running(True) as mesh, opened(browser, mesh) as page:
        until(page, f"{text_of('where')}.includes('truck 1')")
        shows(page, "#mode", "actions allowed")
        page.fill("#want", "4")
        page.click("#ask button")
        until(page, f"{text_of('refused')}.includes('Cannot grant 4 permits')")
        page.fill("#want", "2")
        page.fill("#priority", "9")
        page.click("#ask button")
        until(page, "document.querySelector('#requests .chip.inside')?.textContent === 'held'")
        holds(page, lambda: page.inner_text("#refused") == "")
        until(page, f"{text_of('where')}.includes('gate 2')")

        page.fill("#want", "3")  # more than are free: it waits
        page.click("#ask button")
        until(page, f"{text_of('requests')}.includes('waiting')")
        until(
            page,
            "[...document.querySelectorAll('#waiting td:first-child')]"
            ".some((cell) => cell.textContent === 'gate')",
        )
        page.wait_for_timeout(3000 if wanted() else 0)
        picture(page, "live-actions")
        page.get_by_role("button", name="Withdraw").click()
        until(page, f"!{text_of('requests')}.includes('waiting')")
        page.get_by_role("button", name="Release").press("Enter")
        until(page, "document.querySelectorAll('#requests button').length === 0")
        assert mesh.nodes["gate"]._local.pools["docks"].adapter.clients == {}

        page.get_by_role("button", name="Cut for 30 s: the link to dock").hover()
        page.mouse.down()
        page.evaluate("document.getElementById('links').dataset.key = ''")  # it is drawn anew
        until(page, "document.getElementById('links').dataset.key")
        page.mouse.up()
        until(page, f"{text_of('verdict')}.includes('cut on purpose')")
        until(page, "document.querySelectorAll('#map .gone').length === 2")
        button = page.get_by_role("button", name="Restore: the link to dock")
        button.focus()
        for _ in range(2):  # the page is drawn anew meanwhile
            page.wait_for_event("response", lambda answer: "/view.json" in answer.url)
        assert page.evaluate("document.activeElement.textContent") == "Restore"
        page.keyboard.press("Enter")
        until(page, "document.querySelectorAll('#map .gone').length === 0")


def test_permits_go_back_when_the_tab_is_closed(browser, monkeypatch):
    monkeypatch.setattr("meshlock.web.live.ABANDONED_AFTER", LIMIT)
    requests = []

    def noted(node):
        requests.append(PageRequests(node))
        return requests[-1]

    monkeypatch.setattr("meshlock.web.live.PageRequests", noted)
    with running(True) as mesh:
        with opened(browser, mesh) as page:
            page.click("#ask button")
            until(page, "document.querySelector('#requests .chip.inside')?.textContent === 'held'")
            [request] = requests[0].all.values()
            for _ in range(3):  # as long as somebody looks
                timer = request.timer
                sooner_or_later(lambda timer=timer: request.timer is not timer)
            clients = mesh.nodes["gate"]._local.pools["docks"].adapter.clients
            assert len(clients) == 1
        monkeypatch.setattr("meshlock.web.live.ABANDONED_AFTER", 0.1)
        loop = requests[0].node.mesh.loop
        loop.call_soon_threadsafe(requests[0].mark_seen, [request.name])  # for the last time
        sooner_or_later(lambda: not clients)
        assert request.why == "the page was closed"


def test_what_nodes_tell_is_text_and_the_page_fits_a_phone_in_the_dark(browser):
    phone = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
    with running(False) as mesh:
        dock = mesh.nodes["dock"]._local.pools["docks"]
        dock.peers.conflicts["x"] = "<img src=x onerror=alert(1)>"
        with opened(browser, mesh, **phone) as page:
            until(page, f"{text_of('verdict')}.includes('<img src=x')")
            assert page.locator("img").count() == 0
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            picture(page, "live-phone")


OPPOSITE = """async () => {
  const { pictureOf } = await import('/page/map.js');
  const node = (other, age) => ({ links: [other], distance: 0, age, holds: 0, left: false,
    pool_view: { known: true, towards: other, token_here: false, waits: 0, free_here: 0 } });
  const svg = document.getElementById('map').cloneNode();
  pictureOf(svg, { node: 'a', nodes: { a: node('b', 0), b: node('a', 0.8) } }, 3);
  return svg.querySelectorAll('.tip').length;
}"""


def test_a_link_has_one_arrow_and_the_page_a_switch_for_light_and_dark(browser):
    with running(False) as mesh, opened(browser, mesh) as page:
        assert page.evaluate(OPPOSITE) == 1  # pool_view of different ages: the younger counts
        dark = "document.documentElement.classList.contains('dark')"
        page.click("#theme")
        until(page, dark)
        page.reload()
        until(page, f"{dark} && !document.getElementById('shown').hidden")
        page.click("#theme")
        until(page, f"!{dark}")


def test_the_way_to_the_token_is_known():
    async def pair():
        async with meshlock.Node("a") as a, meshlock.Node("b", peers=[a.address]) as b:
            a.pool("seats", permits=1)
            far = b.pool("seats")
            async with far.acquire():
                pass

            def pool_view():
                return [view(n._local, "seats")["nodes"][n.name]["pool_view"] for n in (a, b)]

            await eventually(lambda: sum(node["token_here"] for node in pool_view()) == 1)
            return pool_view()

    with ThreadPoolExecutor(1) as elsewhere:  # the browser's driver has a loop in this thread
        first, second = elsewhere.submit(asyncio.run, pair()).result(LIMIT)
    holder, other = (first, second) if first["token_here"] else (second, first)
    assert holder["towards"] is None
    assert other["towards"] == ("a" if holder is first else "b")


def test_an_agent_that_says_nothing_any_more_looks_like_it(browser):
    with running(False) as mesh:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(mesh.page)
        page.fill("#token", TOKEN)
        page.keyboard.press("Enter")
        until(page, "document.querySelectorAll('#map .name').length === 4")
        silent = "document.documentElement.classList.contains('silent')"
        assert not page.evaluate(silent)
        page.route("**/view.json*", lambda _: None)  # the process is stopped: nothing comes
        until(page, silent)
        shows(page, "#verdict", "The agent has not answered for ")
        assert page.title().startswith("(!) ")
        assert page.get_attribute("#icon", "href") == "/page/alarm.svg"
        before = page.inner_text("#verdict")
        holds(page, lambda: page.inner_text("#verdict") != before)  # its age grows
        page.unroute("**/view.json*")
        until(page, f"!{silent}")
        page.close()
