"""The page of a map: what it shows, and that no text can change it."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from tercet.cli.map_page import TextMap, draw_map, make_map, map_page

HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a -->", '"quoted" & $x$']


def a_map(texts: list[str], clusters: list[list[int]], names: list[str]) -> TextMap:
    points = np.linspace(0, 1, 2 * len(texts), dtype=np.float32).reshape(-1, 2)
    return TextMap(points=points, texts=texts, clusters=clusters, names=names, layout="pca")


class Tags(HTMLParser):
    """The tags of a page with their attributes, and the text of each button of the legend."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.buttons: list[str] = []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "button" and "data-cluster" in dict(attrs):
            self.buttons.append("")
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "button"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.buttons[-1] += f"{data}|"


def test_the_legend_lists_clusters_with_sizes() -> None:
    page = Tags(map_page(a_map(list("abcde"), [[0, 1], [2, 3]], ["first", "second"])))
    assert page.buttons == ["first|2|", "second|2|", "not in a cluster|1|"]


def test_hostile_texts_and_names_stay_texts() -> None:
    page = map_page(a_map(HOSTILE, [[0, 1], [2, 3]], HOSTILE[:2]))
    tags = Tags(page)
    assert [tag for tag, _ in tags.found].count("script") == 1
    assert "img" not in [tag for tag, _ in tags.found]
    assert tags.buttons[0] == f"{HOSTILE[0]}|2|"
    assert page.count("</script>") == 1


def test_a_map_loads_nothing_from_elsewhere() -> None:
    page = map_page(a_map(["a", "b"], [[0, 1]], ["name"]))
    assert "http" not in page
    assert not {name for _, attributes in Tags(page).found for name in attributes} & {"src", "href"}
    assert not re.search(r"@import|url\(|import\(|fetch\(", page)


def test_long_texts_are_cut_with_a_note() -> None:
    page = map_page(a_map(["x" * 301, "y" * 300], [], []))
    assert "x" * 300 + "\\u2026" in page
    assert "x" * 301 not in page
    assert "y" * 300 + '"' in page
    assert "cut to 300 characters, which concerns 1 of them" in page


def test_a_long_legend_says_how_many_clusters_it_leaves_out() -> None:
    texts = [str(number) for number in range(206)]
    clusters = [[2 * number, 2 * number + 1] for number in range(103)]
    page = map_page(a_map(texts, clusters, texts[:103]))
    assert len(Tags(page).buttons) == 101
    assert "and 3 smaller clusters" in page


def test_a_cluster_is_named_at_its_point_nearest_to_the_median() -> None:
    points = np.array([[0.0, 0.0], [0.2, 0.1], [1.0, 1.0]], dtype=np.float32)  # the mean is (0.4, 0.37)
    drawn = TextMap(points=points, texts=["a", "b", "c"], clusters=[[0, 1, 2]], names=["n"], layout="pca")
    np.testing.assert_allclose(drawn.centres[0], [0.2, 0.1])


def test_equal_texts_make_a_map() -> None:
    vectors = np.ones((3, 4), dtype=np.float32)
    drawn = make_map(vectors, ["a"] * 3, clusters=[[0, 1, 2]], names=["a"])
    assert np.isfinite(drawn.points).all()


def test_a_picture_has_room_for_names_with_any_characters(tmp_path: Path) -> None:
    drawn = a_map(HOSTILE, [[0, 1], [2, 3]], ["$x_{$", "a" * 90])
    draw_map(tmp_path / "map.png", drawn)
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def script() -> str:
    return map_page(a_map(["a", "b"], [[0, 1]], ["name"])).partition("<script")[2]


def block(start: str) -> str:
    """The lines of the script from one that contains ``start`` to the end of its statement."""
    found = re.search(rf"^(\s*)[^\n]*{re.escape(start)}.*?^\1\}}", script(), re.DOTALL | re.MULTILINE)
    assert found is not None, start
    return found.group()


def test_a_cancelled_pointer_ends_dragging() -> None:
    assert 'canvas.addEventListener("pointercancel", endDrag)' in script()
    assert "dragged = null" in block("function endDrag")
    assert 'classList.remove("dragging")' in block("function endDrag")


def test_buttons_that_move_the_map_hide_the_text_of_a_point() -> None:
    assert all(f'"{name}": ' in script() for name in ("#closer", "#farther", "#reset"))
    assert "point(null)" in block("of Object.entries(BUTTONS)")


def test_a_listed_text_that_is_left_is_not_marked_any_more() -> None:
    assert '["blur", "mouseleave"]' in block("function listedText")
    assert "if (chosen.point === index) point(null)" in block("function listedText")
