"""Saved views in the browser: save, open, change, share, order, delete."""

import re
import uuid

import pytest

from tickets.columns import COLUMNS as ALL
from tickets.models import ListSettings, Membership, SavedView, Ticket
from tickets.views import list as list_view

COLUMNS = ["id", "subject", "status"]


@pytest.fixture
def save(bob):
    def save(name="Fires", by=bob, team=None, filters=None, columns=COLUMNS):
        return SavedView.objects.save_view(
            by, name=name, team=team, filters=filters or {}, zone="UTC", columns=columns
        )

    return save


def subjects(answer):
    return sorted(ticket.subject for ticket in answer.context["page"])


def tabs(answer):
    return {view["label"]: view["count"] for view in answer.context["views"] if "team" in view}


def shown_columns(answer):
    return [column["field"] for column in answer.context["columns"]]


def test_the_current_list_is_saved_and_opened_again(client, make_ticket, bob):
    make_ticket("Fire", priority="urgent")
    make_ticket("Smoke")
    client.force_login(bob)
    query = "priority=urgent&sort=due&columns=id&columns=subject&columns=tags"
    page = client.get(f"/tickets/views/new/?{query}")
    assert page.context["form"].initial["name"] == "Urgent"
    fields = [("name", "Urgent ones"), ("shared_with", "")]
    fields += page.context["pairs"] + [("columns", each) for each in ("id", "subject", "tags")]
    data = {}
    for name, value in fields:
        data.setdefault(name, []).append(value)
    answer = client.post("/tickets/views/new/", data)
    view = SavedView.objects.get()
    assert answer.url == f"/tickets/?view={view.pk}"
    opened = client.get(answer.url)
    assert subjects(opened) == ["Fire"]
    assert shown_columns(opened) == ["id", "subject", "tags"]
    assert opened.context["chosen"].sort == "due"
    assert tabs(opened) == {"Urgent ones": 1}
    assert [view["label"] for view in opened.context["views"] if view["is_here"]] == ["Urgent ones"]
    assert not opened.context["listing"].is_changed


def test_a_view_of_one_team_keeps_that_filter_beside_whom_it_is_shared_with(
    client, bob, support, billing
):
    billing.memberships.create(user=bob)
    client.force_login(bob)
    client.post(
        "/tickets/views/new/",
        {"name": "V", "team": billing.pk, "shared_with": support.pk, "columns": ["id"]},
    )
    view = SavedView.objects.get()
    assert (view.team, view.filters) == (support, {"team": [str(billing.pk)]})


def test_a_double_click_saves_one_view(client, bob):
    client.force_login(bob)
    data = {"name": "V", "columns": ["id"], "submission": uuid.uuid4().hex}
    addresses = {client.post("/tickets/views/new/", data).url for _ in range(3)}
    assert len(addresses) == SavedView.objects.count() == 1


def test_what_is_wrong_is_said_and_nothing_typed_is_lost(client, bob, billing):
    client.force_login(bob)
    data = {"name": "", "status": "open", "columns": ["tags"], "shared_with": ""}
    answer = client.post("/tickets/views/new/", data)
    assert answer.status_code == 422
    text = answer.content.decode()
    assert '<input type="hidden" name="status" value="open">' in text
    assert re.search(r'value="tags"[^>]*checked', text)
    forged = data | {"name": "V", "shared_with": billing.pk}
    assert client.post("/tickets/views/new/", forged).status_code == 422
    assert not SavedView.objects.exists()


def test_a_shared_view_shows_each_viewer_what_they_may_see(
    client, make_ticket, save, support, billing, alice, bob, charlie
):
    make_ticket("Ours")
    make_ticket("Theirs", team=billing, by=charlie)
    billing.memberships.create(user=alice, role="viewer")
    view = save(team=support)
    seen = {}
    for person in (alice, bob):
        client.force_login(person)
        answer = client.get(f"/tickets/?view={view.pk}")
        seen[person] = subjects(answer)
        assert tabs(answer) == {"Fires": len(seen[person])}
    assert seen == {alice: ["Ours", "Theirs"], bob: ["Ours"]}


def test_me_is_whoever_looks(client, make_ticket, save, support, alice, bob):
    make_ticket("Alice's", assignee=alice)
    make_ticket("Bob's", assignee=bob)
    view = save(team=support, filters={"assignee": "me"})
    for person in (alice, bob):
        client.force_login(person)
        assert subjects(client.get(f"/tickets/?view={view.pk}")) == [f"{person.first_name}'s"]


@pytest.mark.parametrize("forged", ["0", "99999999999999999999", "x", "", "-1", "打"])
def test_a_view_that_is_not_there_is_404(client, bob, forged):
    client.force_login(bob)
    assert client.get("/tickets/", {"view": forged}).status_code == 404


def test_another_persons_view_and_one_of_a_team_one_left_are_404(
    client, save, support, alice, bob, vera, charlie
):
    private, shared = save(by=alice), save(team=support)
    client.force_login(charlie)
    for view in (private, shared):
        for method, address in (
            ("get", f"/tickets/?view={view.pk}"),
            ("get", f"/tickets/views/{view.pk}/edit/"),
            ("post", f"/tickets/views/{view.pk}/edit/"),
            ("post", f"/tickets/views/{view.pk}/move/"),
            ("post", f"/tickets/views/{view.pk}/delete/"),
        ):
            assert getattr(client, method)(address).status_code == 404
    client.force_login(vera)
    assert client.get(f"/tickets/?view={shared.pk}").status_code == 200
    Membership.objects.filter(user=vera).delete()
    assert client.get(f"/tickets/?view={shared.pk}").status_code == 404
    assert tabs(client.get("/tickets/")) == {}


def test_filters_that_do_not_fit_the_viewer_are_complaints(
    client, make_ticket, save, support, billing, bob, vera
):
    make_ticket("Ours")
    billing.memberships.create(user=bob)
    filters = {"team": [str(support.pk), str(billing.pk)], "status": ["open", "melted"]}
    view = save(team=support, filters=filters)
    client.force_login(vera)
    answer = client.get(f"/tickets/?view={view.pk}")
    assert answer.status_code == 200
    assert {text.partition(":")[0] for text in answer.context["complaints"]} == {"Team", "Status"}
    assert subjects(answer) == ["Ours"]
    assert tabs(answer) == {"Fires": 1}
    assert not answer.context["listing"].is_changed
    assert client.get("/tickets/views/").status_code == 200


def test_changed_filters_are_offered_to_be_saved(client, make_ticket, save, bob, vera, support):
    make_ticket("Fire", priority="urgent")
    make_ticket("Smoke")
    view = save(team=support, filters={"priority": ["urgent"]})
    client.force_login(bob)
    # The filter form sends all of its fields, with the view it began with.
    changed = client.get(f"/tickets/?view={view.pk}&q=&priority=normal&priority=urgent")
    assert subjects(changed) == ["Fire", "Smoke"]
    assert 'id="change-view"' in changed.content.decode()
    address = f"/tickets/views/{view.pk}/edit/?{changed.context['listing'].save_query()}"
    form = client.get(address).context
    assert ("priority", "normal") in form["pairs"]
    data = {
        "name": "All", "columns": ["id"], "version": 1, "replaces": 1,
        "priority": ["normal", "urgent"], "shared_with": support.pk,
    }  # fmt: skip
    assert client.post(f"/tickets/views/{view.pk}/edit/", data).status_code == 302
    view.refresh_from_db()
    assert view.filters == {"priority": ["normal", "urgent"]}
    client.force_login(vera)
    theirs = client.get(f"/tickets/?view={view.pk}&q=")
    assert 'id="change-view"' not in theirs.content.decode()
    assert 'id="save-view"' in theirs.content.decode()


def test_no_filter_is_another_thing_than_the_views(client, make_ticket, save, bob):
    make_ticket("Fire", priority="urgent")
    make_ticket("Smoke")
    view = save(filters={"priority": ["urgent"]})
    client.force_login(bob)
    opened = client.get(f"/tickets/?view={view.pk}")
    without = opened.context["active_filters"][0]["without"]
    assert subjects(client.get(f"/tickets/?{without}")) == ["Fire", "Smoke"]


def test_a_new_name_leaves_filters_that_do_not_fit(client, save, support, billing, alice, bob):
    billing.memberships.create(user=bob)
    filters = {"team": [str(billing.pk)]}
    view = save(team=support, filters=filters)
    client.force_login(alice)  # leads support, is not in billing
    data = {"name": "Theirs", "columns": COLUMNS, "version": 1}
    assert client.post(f"/tickets/views/{view.pk}/edit/", data).status_code == 302
    view.refresh_from_db()
    assert (view.name, view.filters, view.team) == ("Theirs", filters, support)


def test_a_conflict_shows_both_and_loses_nothing(client, save, support, alice, bob):
    view = save("Fires", team=support)
    view.change(alice, 1, name="Alice's name")
    client.force_login(bob)
    data = {"name": "Bob's name", "columns": COLUMNS, "version": 1, "shared_with": support.pk}
    answer = client.post(f"/tickets/views/{view.pk}/edit/", data)
    assert answer.status_code == 409
    text = answer.content.decode()
    assert "Alice&#x27;s name" in text
    assert 'value="Bob&#x27;s name"' in text
    again = data | {"version": re.search(r'name="version" value="(\d+)"', text)[1]}
    assert client.post(f"/tickets/views/{view.pk}/edit/", again).status_code == 302
    view.refresh_from_db()
    assert view.name == "Bob's name"


def test_it_is_deleted_and_moved(client, save, bob):
    first, second = save("a"), save("b")
    client.force_login(bob)
    client.post(f"/tickets/views/{second.pk}/move/", {"direction": "up"})
    assert client.get("/tickets/views/").context["views"] == [second, first]
    assert list(tabs(client.get("/tickets/"))) == ["b", "a"]
    client.post(f"/tickets/views/{second.pk}/delete/")
    assert list(tabs(client.get("/tickets/"))) == ["a"]


def test_who_may_only_see_it_deletes_nothing(client, save, support, alice, vera):
    view = save(by=alice, team=support)
    client.force_login(vera)
    assert client.post(f"/tickets/views/{view.pk}/delete/").status_code == 403
    assert client.get(f"/tickets/views/{view.pk}/edit/").status_code == 403
    assert SavedView.objects.filter(pk=view.pk).exists()


def test_the_number_of_queries_does_not_grow_with_views(
    client, make_ticket, save, support, alice, bob, django_assert_max_num_queries
):
    make_ticket("One", assignee=alice)
    save("0", team=support, filters={"assignee": str(alice.pk), "team": [str(support.pk)]})
    client.force_login(bob)
    for address in ("/tickets/", "/tickets/views/"):
        with django_assert_max_num_queries(14) as few:
            client.get(address)
        for n in range(20):
            filters = {"assignee": str(bob.pk + n), "team": [str(support.pk)], "q": f"word {n}"}
            save(f"{n}", by=alice if n % 2 else bob, team=support, filters=filters)
        with django_assert_max_num_queries(len(few)):
            client.get(address)


def test_only_so_many_are_counted_and_the_one_that_is_open_always(client, save, bob):
    views = [save(f"{n:02}") for n in range(15)]
    client.force_login(bob)
    assert list(tabs(client.get("/tickets/"))) == [f"{n:02}" for n in range(12)]
    opened = client.get(f"/tickets/?view={views[14].pk}")
    assert list(tabs(opened))[-1] == "14"


def test_columns_are_remembered_and_begin_an_export(client, make_ticket, bob, alice):
    ticket = make_ticket("Fire", tags=["hot"])
    client.force_login(bob)
    data = {"columns": ["tags", "created_at", "nonsense"], "list": "status=open&page=2"}
    answer = client.post("/tickets/columns/", data)
    assert answer.url == "/tickets/?status=open&page=2"
    page = client.get("/tickets/")
    assert shown_columns(page) == ["subject", "tags", "created_at"]
    assert f"#{ticket.pk}</td>" not in page.content.decode()
    assert client.get("/exports/new/").context["form"].initial["columns"] == [
        "subject", "tags", "created_at"
    ]  # fmt: skip
    client.force_login(alice)
    assert "team" in shown_columns(client.get("/tickets/"))
    client.force_login(bob)
    client.post("/tickets/columns/", {"columns": ["id"], "usual": "1", "list": ""})
    assert ListSettings.objects.get(person=bob).columns == []
    assert "team" in shown_columns(client.get("/tickets/"))


def test_in_a_view_columns_belong_to_it(client, make_ticket, save, bob):
    make_ticket("Fire")
    view = save()
    client.force_login(bob)
    answer = client.post(
        "/tickets/columns/", {"columns": ["tags"], "list": f"view={view.pk}&columns=id"}
    )
    assert answer.url == f"/tickets/?view={view.pk}&columns=subject&columns=tags"
    changed = client.get(answer.url)
    assert shown_columns(changed) == ["subject", "tags"]
    assert changed.context["listing"].is_changed
    assert not ListSettings.objects.filter(person=bob).exists()
    link = re.search(r'id="export-link" class="btn" href="([^"]+)"', changed.content.decode())[1]
    export = client.get(link.replace("&amp;", "&"))
    assert export.context["form"].initial["columns"] == ["subject", "tags"]
    # A change of filters or order keeps them.
    assert (
        "columns=tags" in next(each for each in changed.context["columns"] if each["key"])["query"]
    )
    assert '<input type="hidden" name="columns" value="tags">' in changed.content.decode()


@pytest.mark.parametrize("columns", [["nonsense"], [], ["x" * 5000]])
def test_columns_that_are_none_are_the_usual_ones(client, bob, columns):
    client.force_login(bob)
    assert client.post("/tickets/columns/", {"columns": columns}).url == "/tickets/"
    assert "team" in shown_columns(client.get("/tickets/", {"columns": columns}))


def test_every_column_can_be_shown(client, make_ticket, bob):
    make_ticket("Fire", assignee=bob, status="resolved", requester_name="Mara", tags=["hot"])
    make_ticket("Bare")
    Ticket.objects.filter(subject="Bare").update(creator=None)
    client.force_login(bob)
    answer = client.get("/tickets/", {"columns": [column.field for column in ALL]})
    text = answer.content.decode()
    assert text.count("<th scope") == len(ALL) + 1
    for row in re.findall(r"<tr>\s*<td.*?</tr>", text, re.DOTALL):
        assert row.count("<td") == row.count("</td>") == len(ALL) + 1


def test_pages_of_a_view_keep_to_it(client, make_ticket, save, bob, monkeypatch):
    monkeypatch.setattr(list_view, "PER_PAGE", 2)
    for n in range(5):
        make_ticket(f"Ticket {n}", priority="high" if n else "low")
    view = save(filters={"priority": ["high"], "sort": "subject"})
    client.force_login(bob)
    first = client.get(f"/tickets/?view={view.pk}")
    second = client.get(f"/tickets/?{first.context['pager']['next']}")
    assert subjects(first) + subjects(second) == [f"Ticket {n}" for n in (1, 2, 3, 4)]
    assert not second.context["listing"].is_changed
