"""A browser on this machine cannot be used against the agent by a page from elsewhere."""

from __future__ import annotations

import asyncio
import json

import pytest
import virtual

from meshlock import Node, Refused
from meshlock.live.interfaces.http import Interface
from meshlock.live.interfaces.serving import ours, serving_port
from meshlock.web.live import LivePage
from ports import free_port
from waiting import a_while, eventually, run


def test_the_names_by_which_an_agent_may_be_asked() -> None:
    assert ours("localhost", "127.0.0.1", []) and ours("127.1.2.3", "127.0.0.1", [])
    assert ours("::1", "127.0.0.1", [])
    assert not ours("127.evil.example", "127.0.0.1", [])
    assert not ours("evil.example", "127.0.0.1", []) and not ours("", "127.0.0.1", [])
    assert not ours("10.0.0.1", "127.0.0.1", [])
    assert ours("10.0.0.1", "10.0.0.1", []) and ours("robot.lan", "10.0.0.1", ["robot.lan"])
    assert ours("10.0.0.1", "0.0.0.0", []) and not ours("evil.example", "0.0.0.0", [])
    assert ours("robot.lan", "robot.lan", [])


async def call(
    port: int, request: str, headers: dict[str, str], body: object = None
) -> tuple[int, str]:
    """One request as a browser would send it, with headers of our choice."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"{request} HTTP/1.1", *[f"{name}: {value}" for name, value in headers.items()]]
    lines += [f"Content-Length: {len(data)}", "Connection: close", "", ""]
    writer.write("\r\n".join(lines).encode() + data)
    answer = (await reader.read()).decode()
    writer.close()
    return int(answer.split()[1]), answer.partition("\r\n\r\n")[2]


def test_other_names_and_other_origins_are_turned_away() -> None:
    async def story() -> None:
        port = free_port()
        here = f"127.0.0.1:{port}"
        async with Node("a") as a:
            a.pool("docks", permits=1)
            async with serving_port(Interface(a), here, None, LivePage().routes, ["Robot.lan"]):
                status, said = await call(port, "GET /v1/status", {"Host": "evil.example"})
                assert (
                    status == 403 and "The host 'evil.example' is not a name of this agent" in said
                )
                for path in ("/", "/live", "/view.json", "/metrics", "/page/live.js"):
                    assert (await call(port, f"GET {path}", {"Host": "evil.example"}))[0] == 403
                assert (await call(port, "GET /v1/status", {"Host": "["}))[0] in (400, 403)
                for host in (here, f"localhost:{port}", "robot.lan", f"[::1]:{port}"):
                    assert (await call(port, "GET /v1/status", {"Host": host}))[0] == 200

                acquire = "POST /v1/pools/docks/acquire"
                for origin in ("http://evil.example", "null", f"http://localhost:{port}"):
                    headers = {"Host": here, "Origin": origin, "Content-Type": "text/plain"}
                    status, said = await call(port, acquire, headers, {})
                    assert status == 403 and "other sites" in said
                assert a._local.pools["docks"].adapter.clients == {}
                own = {"Host": here, "Origin": f"http://{here}"}
                assert (await call(port, acquire, own, {}))[0] == 200

    run(story)


def test_the_page_acts_only_if_it_may() -> None:
    async def story() -> None:
        port = free_port()
        here = f"127.0.0.1:{port}"
        own = {"Host": here, "Content-Type": "application/json", "Authorization": "Bearer yes"}
        async with Node("a") as a:
            a.pool("docks", permits=1)
            async with serving_port(Interface(a), here, "yes", LivePage().routes):
                for what in ("acquire", "release", "cut", "restore"):
                    status, said = await call(port, f"POST /actions/{what}", own, {})
                    assert status == 403 and "This agent does not allow actions" in said
            with pytest.raises(Refused, match="need a bearer token"):
                async with serving_port(Interface(a), here, None, LivePage(allowed=True).routes):
                    pass

    run(story)


def test_actions_need_the_token_json_and_sense() -> None:
    async def story() -> None:
        port = free_port()
        here = f"127.0.0.1:{port}"
        own = {"Host": here, "Content-Type": "application/json", "Authorization": "Bearer yes"}
        async with Node("a") as a, Node("b", peers=[a.address]):
            a.pool("docks", permits=2)
            async with serving_port(Interface(a), here, "yes", LivePage(allowed=True).routes):

                async def act(what: str, body: object, **other: str) -> tuple[int, str]:
                    return await call(port, f"POST /actions/{what}", own | other, body)

                ask = {"pool": "docks", "want": 2, "priority": 3}
                assert (await act("acquire", ask, Authorization="Bearer no"))[0] == 401
                status, said = await act("acquire", ask, **{"Content-Type": "text/plain"})
                assert (status, said) == (415, '{"why":"Send JSON."}')
                assert (await act("acquire", {"pool": "docks", "want": 3}))[0] == 400
                assert (await act("acquire", {"pool": "nothing"}))[0] == 400
                assert (await act("acquire", {"pool": "docks", "priority": 2**40}))[0] == 400
                assert (await act("acquire", {"pool": "docks", "wnat": 1}))[0] == 400
                assert (await act("cut", {"peer": "b", "seconds": 1e9}))[0] == 400
                assert (await act("cut", {"peer": "z"}))[0] == 400
                assert (await act("release", {"request": "z"}))[0] == 400
                assert a._local.pools["docks"].adapter.clients == {}

                status, said = await act("acquire", ask)
                assert status == 200 and json.loads(said)["state"] in ("waiting", "held")
                assert (await act("acquire", ask))[0] == 200
                states = []
                while states != ["held", "waiting"]:
                    view = json.loads((await call(port, "GET /view.json", own))[1])
                    states = [request["state"] for request in view["requests"]]
                for request in view["requests"]:
                    status, said = await act("release", {"request": request["request"]})
                    assert json.loads(said)["state"] == "released"
                await eventually(lambda: a._local.pools["docks"].adapter.clients == {})

                while "b" not in a._local.mesh.linked:
                    await asyncio.sleep(0.01)
                assert (await act("cut", {"peer": "b"}))[0] == 200
                assert "b" not in a._local.mesh.linked
                assert (await act("restore", {"peer": "b"}))[0] == 200
                while "b" not in a._local.mesh.linked:
                    await asyncio.sleep(0.01)

    run(story)


def test_what_a_page_asked_for_goes_back_when_the_page_goes_away() -> None:
    from meshlock.web import live as module

    async def story(_: virtual.Network) -> None:
        async with Node("a") as a:
            docks = a.pool("docks", permits=2)
            requests = module.PageRequests(a._local)
            one = module.AcquireAction("docks", 1, 0)
            kept, left = requests.start(one), requests.start(one)
            waits = requests.start(module.AcquireAction("docks", 2, 5))
            for _ in range(40):
                requests.mark_seen([kept.name])
                await a_while(module.ABANDONED_AFTER / 10)
            assert (kept.state, left.state, waits.state) == ("held", "released", "released")
            assert left.why == "the page was closed"
            assert len(docks._source.adapter.clients) == 1
            requests.release(kept.name)

            lost = requests.start(one)
            await a_while(0.02)
            docks._source.close()
            await a_while(0.02)
            assert lost.state == "lost"
            with pytest.raises(Refused, match="closed"):
                requests.start(one)

    virtual.run(story)
