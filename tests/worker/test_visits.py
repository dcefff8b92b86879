"""Which clients are worth a line."""

from specdec_cli.worker.visits import WORTH_A_LINE, Visit


def test_a_client_that_stays_gets_a_line_when_it_is_due_and_one_when_it_leaves() -> None:
    visit = Visit()
    visit.begin(10)
    assert visit.due(10) == WORTH_A_LINE
    assert visit.due(10 + 2 * WORTH_A_LINE) == 0
    visit.tell()
    assert visit.due(99) is None
    assert visit.end(100) == 90


def test_a_client_that_leaves_at_once_gets_none() -> None:
    visit = Visit()
    visit.begin(10)
    assert visit.end(10.1) is None
    assert visit.due(99) is None


def test_the_next_client_is_told_of_anew() -> None:
    visit = Visit()
    visit.begin(10)
    visit.tell()
    visit.end(20)
    visit.begin(30)
    assert visit.due(30) == WORTH_A_LINE
    assert visit.end(31) is None


def test_nobody_is_due_and_nobody_leaves_where_nobody_came() -> None:
    assert Visit().due(5) is None
    assert Visit().end(5) is None
