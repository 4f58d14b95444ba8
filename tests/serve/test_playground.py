"""The playground in a real browser, on a real server with the packaged models."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serve.browser import (
    CHROMIUM,
    browsing,
    column,
    opened,
    rank,
    serving,
    shown_texts,
    wait_for_ranks,
    wait_until_ready,
    write,
)

import tercet
from tercet.data.sample import chats, pairs, questions, sample_folder
from tercet.errors import TruncationWarning

for needed in ("fastapi", "uvicorn", "orjson", "prometheus_client"):
    pytest.importorskip(needed, reason="needs tercet[serve]")
api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.filterwarnings("ignore::tercet.errors.UnreadableTextWarning"),  # Hebrew and Korean are meant
]

ROOT = Path(__file__).parents[2]
AXE = Path(os.environ.get("AXE_CORE", ROOT / "node_modules/axe-core/axe.min.js"))
MODELS = ("bi", "poly", "cross")
TURNS = ["My parcel was sent on Monday 😀.", "Has it arrived?"]
CANDIDATES = [
    "The shop opens at nine.",
    "It arrives on Tuesday.",
    "Water it once a week.",
    "Your parcel is still on its way.",
    "We do not ship abroad.",
]
HOSTILE = [
    "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>",
    "שלום עולם \u202eabc\u202c, مرحبا",
    "👩‍👩‍👧‍👦 emoji 🏳️‍🌈",
    "x" * 5000,
    'it\'s "quoted" \\n `date` $(date) ${HOME} %s & | ; # 한국어',
]
SEARCH = "my card was declined"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("playground") / "faq.tercet"
    with tercet.Retriever("bi", path=path) as retriever:
        entries = questions("en")
        retriever.add([{"text": each.question, "topic": each.topic} for each in entries])
    return path


@pytest.fixture(scope="module")
def served(index: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The address of the server, and its models in this process, which are loaded at the same time."""
    models = [part for name in MODELS for part in ("--model", name)]
    with serving(*models, "--index", f"faq={index}", until="Loading models") as found:
        scorers = {name: tercet.load(name, device="cpu") for name in MODELS}
        wait_until_ready(found)
        yield found, scorers


@pytest.fixture(scope="module")
def address(served: tuple[str, dict[str, Any]]) -> str:
    return served[0]


@pytest.fixture(scope="module")
def scorers(served: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return served[1]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as found:
        yield found


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address) as found:
        yield found


def test_each_column_has_the_order_and_the_scores_of_the_library(page: Any, scorers: dict[str, Any]) -> None:
    rank(page, TURNS, CANDIDATES)
    for name, scorer in scorers.items():
        ranking = scorer.rank(TURNS, CANDIDATES, k=len(CANDIDATES))
        assert shown_texts(page, name) == [each.text for each in ranking]
        scores = page.locator(f'.column[data-model="{name}"] .score').all_text_contents()
        shown = [float(score.replace("−", "-")) for score in scores]
        assert shown == pytest.approx([each.score for each in ranking], abs=2e-3)


def test_lines_lead_from_the_rank_of_a_candidate_to_its_rank_in_the_next_column(page: Any) -> None:
    rank(page, TURNS, CANDIDATES)
    drawings = page.locator("svg.moves")
    assert drawings.count() == len(MODELS) - 1
    for left, right, drawing in zip(MODELS, MODELS[1:], drawings.all(), strict=False):
        before, after = shown_texts(page, left), shown_texts(page, right)
        lines = drawing.locator("path").evaluate_all(
            "all => all.map(p => [p.dataset.position, p.getAttribute('d')])"
        )
        assert len(lines) == len(CANDIDATES)
        for position, path in lines:
            text = CANDIDATES[int(position)]
            assert path.startswith(f"M0 {before.index(text) + 0.5:g}C")
            assert path.endswith(f" {after.index(text) + 0.5:g}")


def test_a_candidate_that_is_pointed_at_is_lit_in_every_column_and_line(page: Any) -> None:
    rank(page, TURNS, CANDIDATES)
    column(page, "bi").nth(2).hover()
    text = shown_texts(page, "bi")[2]
    assert page.locator(".candidate.active .text").all_text_contents() == [text] * len(MODELS)
    assert page.locator("svg.moves path.active").count() == len(MODELS) - 1


@pytest.mark.parametrize("model", MODELS)
def test_the_words_that_carried_a_score_are_lit_as_the_library_explains_it(
    page: Any, scorers: dict[str, Any], model: str
) -> None:
    rank(page, TURNS, CANDIDATES)
    column(page, model).first.hover()
    page.wait_for_selector(".context-text mark")
    candidate = shown_texts(page, model)[0]
    explanation = scorers[model].explain(TURNS, candidate)
    said = [each for each in explanation.tokens if each.end > each.start and each.text.isalpha()]
    strongest = max(said, key=lambda each: abs(each.contribution))
    words = page.locator(".words .word bdi").all_text_contents()
    assert words[0].strip("?.😀") == strongest.text
    shares = page.locator(".context-text mark").evaluate_all(
        "all => all.map(m => [Number(m.style.getPropertyValue('--share')), m.textContent])"
    )
    assert max(shares)[1].strip("?.😀") == strongest.text
    assert page.locator(".context-text p").all_text_contents() == TURNS
    assert page.locator(".candidate-text").text_content() == candidate


def test_an_explanation_is_asked_for_once_and_kept(page: Any) -> None:
    rank(page, TURNS, CANDIDATES)
    calls: list[str] = []
    page.on("request", lambda request: calls.append(request.url) if "explain" in request.url else None)
    for _ in range(2):
        column(page, "poly").nth(1).hover()
        page.wait_for_selector(".context-text mark")
        page.hover("h1")
        page.wait_for_selector(".context-text mark", state="detached")
    assert len(calls) == 1


@pytest.mark.parametrize("mode", ["vectors", "lexical", "hybrid"])
def test_search_shows_the_hits_of_the_library_and_how_certain_they_are(
    page: Any, index: Path, scorers: dict[str, Any], mode: Any
) -> None:
    certainties = {"certified": "Proven", "fused": "Combined"}
    page.click("#tab-search")
    page.fill("#query", SEARCH)
    page.locator(f"#modes label:has(input[value={mode}])").click()
    page.fill("#k", "4")
    page.press("#query", "Enter")
    page.wait_for_selector(".hit .score")
    with tercet.Retriever.open(index, scorers["bi"]) as retriever:
        hits = retriever.search(SEARCH, k=4, mode=mode)
    assert page.locator(".hit .text").all_text_contents() == [hit.text for hit in hits]
    assert page.locator(".certainty").text_content().startswith(certainties[hits.certainty.value])
    topics = page.locator(".hit dt:text-is('topic') + dd").all_text_contents()
    assert topics == [hit.metadata["topic"] for hit in hits]


def test_reranked_hits_have_the_order_of_the_cross_encoder(
    page: Any, index: Path, scorers: dict[str, Any]
) -> None:
    page.click("#tab-search")
    page.fill("#query", SEARCH)
    page.check("#rerank")
    page.click("#search-run")
    page.wait_for_selector(".hit .score")
    with tercet.Retriever.open(index, scorers["bi"], reranker=scorers["cross"]) as retriever:
        hits = retriever.search(SEARCH, k=10)
    assert page.locator(".hit .text").all_text_contents() == [hit.text for hit in hits]
    assert page.locator(".certainty").text_content().startswith("Reranked")


def test_copied_calls_run_and_rank_alike(browser: Any, address: str, scorers: dict[str, Any]) -> None:
    turns, candidates = [HOSTILE[4], "second\tturn's \\ end"], [*HOSTILE[:3], HOSTILE[4], *CANDIDATES]
    expected = [each.text for each in scorers["bi"].rank(turns, candidates, k=len(candidates))]
    with opened(browser, address, permissions=["clipboard-read", "clipboard-write"]) as page:
        write(page, turns, candidates)

        def copied(call: str) -> str:
            page.click(f"#rank-code-{call}")
            page.click("#rank-code-copy")
            page.wait_for_selector("#rank-code-copy:text-is('Copied')")
            text: str = page.evaluate("navigator.clipboard.readText()")
            return text

        calls = {call: copied(call) for call in ("curl", "http", "library")}
    ran = subprocess.run(["bash", "-c", calls["curl"]], stdout=subprocess.PIPE, check=True)
    assert [each["text"] for each in json.loads(ran.stdout)["ranking"]] == expected
    for call in ("http", "library"):
        ran = subprocess.run([sys.executable, "-c", calls[call]], stdout=subprocess.PIPE, check=True)
        lines = ran.stdout.decode().splitlines()
        assert [line.split(" ", 1)[1] for line in lines] == expected


def test_calls_of_other_clients_are_offered_where_they_apply(page: Any) -> None:
    write(page, TURNS, CANDIDATES)
    offered = {}
    for model in MODELS:
        page.select_option("#rank-code-model", model)
        offered[model] = page.locator("#rank-code [role=tab]").all_text_contents()
    assert "openai" in offered["bi"]
    assert "openai" not in offered["cross"]
    assert all("cohere" in each for each in offered.values())


def test_the_keyboard_alone_is_enough(page: Any) -> None:
    keys = page.keyboard
    keys.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    keys.press("Enter")
    keys.press("Tab")
    keys.press("Tab")
    keys.type(TURNS[0])
    keys.press("Enter")
    keys.type(TURNS[1])
    while page.evaluate("document.activeElement.id") != "candidates":
        keys.press("Tab")
    keys.type("\n".join(CANDIDATES))
    keys.press("Control+Enter")
    wait_for_ranks(page)
    while not page.evaluate("document.activeElement.matches('.candidate')"):
        keys.press("Tab")
    keys.press("ArrowDown")
    focused = "document.activeElement.querySelector('.text').textContent"
    text = page.evaluate(focused)
    assert text == shown_texts(page, "bi")[1]
    keys.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.model") == "poly"
    assert page.evaluate(focused) == text
    keys.press("Enter")
    page.wait_for_selector(".context-text mark")
    assert page.evaluate("document.activeElement.ariaPressed") == "true"
    page.wait_for_selector("#status:has-text('Strongest words')", state="attached")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    keys.press("Escape")
    assert page.locator('.candidate[aria-pressed="true"]').count() == 0
    page.focus("#tab-rank")
    keys.press("ArrowRight")
    assert page.locator("#panel-search").is_visible()
    assert page.evaluate("document.activeElement.id") == "tab-search"


def test_turns_are_added_moved_removed_and_pasted(page: Any) -> None:
    boxes = page.locator("#turns textarea")
    values = "all => all.map(each => each.value)"
    boxes.first.evaluate(
        """area => {
          const data = new DataTransfer();
          data.setData("text", "one\\r\\ntwo\\n\\nthree");
          area.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, cancelable: true}));
        }"""
    )
    assert boxes.evaluate_all(values) == ["one", "two", "three"]
    page.get_by_role("button", name="Move turn 3 up").click()
    assert boxes.evaluate_all(values) == ["one", "three", "two"]
    page.get_by_role("button", name="Remove turn 1").click()
    assert boxes.evaluate_all(values) == ["three", "two"]


@pytest.mark.parametrize("width", [390, 768, 1440])
def test_the_page_does_not_scroll_sideways(browser: Any, address: str, width: int) -> None:
    size = {"width": width, "height": 844}
    with opened(browser, address, viewport=size, is_mobile=width == 390, has_touch=width == 390) as page:
        rank(page, TURNS, [*CANDIDATES, *HOSTILE])
        column(page, "poly").first.click()
        page.wait_for_selector(".context-text mark")
        overflow = "document.documentElement.scrollWidth - innerWidth"
        assert page.evaluate(overflow) <= 0
        page.click("#tab-search")
        page.fill("#query", SEARCH)
        page.click("#search-run")
        page.wait_for_selector(".hit .score")
        assert page.evaluate(overflow) <= 0


def test_the_theme_follows_the_system_until_one_is_chosen(browser: Any, address: str) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    with opened(browser, address, color_scheme="light") as page:
        light = page.evaluate(background)
    with opened(browser, address, color_scheme="dark") as page:
        dark = page.evaluate(background)
        page.click("#theme")
        assert page.evaluate(background) == light
        page.reload()
        assert page.evaluate(background) == light
    assert dark != light


def test_the_language_follows_the_browser_until_one_is_chosen(browser: Any, address: str) -> None:
    with opened(browser, address, locale="ko-KR") as page:
        assert page.evaluate("document.documentElement.lang") == "ko"
        assert page.locator("#rank-run").text_content() == "순위 매기기"
        rank(page, ["비밀번호를 잊어버렸어요."], ["비밀번호를 재설정하세요.", "가게는 아홉 시에 엽니다."])
        assert page.locator("#language-note:visible").text_content().startswith("bi 모델의 어휘에는")
        page.click("#language")
        assert page.locator("#rank-run").text_content() == "Rank"
        assert page.locator(".column header").first.text_content().startswith("bi Bi-encoder")
        assert len(shown_texts(page, "cross")) == 2


def test_both_languages_have_the_same_texts(page: Any) -> None:
    keys = page.evaluate(
        """async () => {
          const [{en}, {ko}] = await Promise.all([import("/playground/en.js"), import("/playground/ko.js")]);
          const kinds = texts => Object.entries(texts).map(([key, text]) => `${key} ${typeof text}`);
          return [kinds(en), kinds(ko)];
        }"""
    )
    assert keys[0] == keys[1]


def test_a_copied_link_restores_inputs_ranks_and_the_explanation(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        rank(page, TURNS, CANDIDATES)
        column(page, "poly").nth(1).click()
        page.wait_for_selector(".context-text mark")
        shown, link = shown_texts(page, "cross"), page.url
    with opened(browser, link) as page:
        wait_for_ranks(page)
        assert page.locator("#turns textarea").evaluate_all("all => all.map(each => each.value)") == TURNS
        assert shown_texts(page, "cross") == shown
        page.wait_for_selector(".context-text mark")
        assert column(page, "poly").nth(1).get_attribute("aria-pressed") == "true"
    with opened(browser, f"{address}/#tab=search&index=faq&query=card&k=3&mode=hybrid&rerank=1") as page:
        page.wait_for_selector(".hit .score")
        assert page.locator(".hit").count() == 3
        assert page.is_checked("#rerank")
        assert page.is_checked("input[value=hybrid]")


def test_back_and_forward_go_from_run_to_run(page: Any) -> None:
    rank(page, ["first question"], CANDIDATES)
    page.locator("#turns textarea").first.fill("second question")
    page.wait_for_timeout(400)  # a draft is written
    page.click("#rank-run")
    page.wait_for_selector('#columns[aria-busy="false"]')
    page.click("#tab-search")
    page.go_back()
    assert page.locator("#panel-rank").is_visible()
    assert page.input_value("#turns textarea") == "second question"
    page.go_back()
    page.wait_for_selector(".context-text:has-text('first question')")
    assert page.input_value("#turns textarea") == "first question"
    page.go_forward()
    page.wait_for_selector(".context-text:has-text('second question')")
    assert page.input_value("#turns textarea") == "second question"


def test_texts_too_long_for_a_link_stay_out_of_it_with_a_note(page: Any) -> None:
    rank(page, ["short"], ["y" * 7000, "z"])
    assert "yyy" not in page.url
    assert page.locator("#rank-long").is_visible()
    page.locator("#candidates").fill("a\nb")
    page.click("#rank-run")
    page.wait_for_selector(".candidate .text:text-is('a')")
    assert page.locator("#rank-long").is_hidden()
    page.go_back()
    page.wait_for_selector(".candidate .text:text-is('z')")
    assert page.input_value("#candidates").startswith("yyy")


def test_hostile_texts_are_shown_as_texts(page: Any) -> None:
    rank(page, [HOSTILE[0]], HOSTILE)
    for model in MODELS:
        assert sorted(shown_texts(page, model)) == sorted(HOSTILE)
        column(page, model).first.click()
        page.wait_for_selector(".words:not(:has-text('Reading'))")
    assert page.locator(".context-text").text_content() == HOSTILE[0]
    assert page.locator("#columns img, #columns script, #explanation img, pre img").count() == 0
    assert page.title() == "tercet playground"
    assert "\u202e" not in page.locator("#rank-code code").text_content()


def test_truncated_tokens_are_counted_as_the_library_counts_them(page: Any, scorers: dict[str, Any]) -> None:
    long = "the wing of an aircraft " * 80
    rank(page, [long.strip()], [long.strip(), "a wing"])
    with pytest.warns(TruncationWarning):
        ranked = scorers["bi"].rank(long.strip(), [long.strip(), "a wing"])
    candidate = next(each for each in ranked if each.position == 0)
    marks = page.locator('.column[data-model="bi"] .cut').all_text_contents()
    assert marks == [
        f"Context truncated: {candidate.context_truncated} tokens not read",
        f"{candidate.candidate_truncated} tokens not read",
    ]


def test_results_of_other_texts_are_marked_as_such(page: Any) -> None:
    rank(page, TURNS, CANDIDATES)
    assert page.locator("#rank-stale").is_hidden()
    page.fill("#candidates", "\n".join(CANDIDATES[1:]))
    assert page.locator("#rank-stale").is_visible()
    page.fill("#candidates", "\n".join(CANDIDATES))
    assert page.locator("#rank-stale").is_hidden()


def test_what_is_missing_is_said(page: Any) -> None:
    page.click("#rank-run")
    assert page.locator("#rank-problem").text_content() == "Write a context first."
    page.fill("#turns textarea", "a context")
    page.click("#rank-run")
    assert "at least one candidate" in page.locator("#rank-problem").text_content()


def test_a_busy_server_is_explained_and_can_be_asked_again(page: Any) -> None:
    error = {"message": "the queue is full", "type": "overloaded", "code": 429, "request_id": "abc123"}

    def refuse(route: Any) -> None:
        route.fulfill(status=429, headers={"Retry-After": "7"}, json={"error": error})

    page.route("**/v1/rank", refuse, times=1)
    rank(page, TURNS, CANDIDATES)
    shown = page.locator(".error").text_content()
    assert "The server is busy. Try again in 7 seconds." in shown
    assert "abc123" in shown
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector(".error", state="detached")
    wait_for_ranks(page)
    assert len(shown_texts(page, "bi")) == len(CANDIDATES)


def test_a_server_with_keys_asks_for_one_and_waits_for_its_models(browser: Any) -> None:
    key = "0123456789abcdef"
    with serving("--model", "bi", until="Loading models", TERCET_API_KEYS=f"read {key}") as address:
        page = browser.new_page(locale="en-US")
        page.goto(address)  # the socket listens before the models are loaded
        write(page, TURNS, CANDIDATES)
        page.fill("#api-key", "wrong-key-wrong-key")
        page.click("form.key button")
        page.wait_for_selector("form.key:has-text('did not accept')")
        page.fill("#api-key", key)
        page.click("form.key button")
        page.wait_for_selector(".notice:has-text('loading its models')")
        page.wait_for_selector("#rank-empty .kinds li", timeout=60_000)
        assert page.locator("#notices").text_content() == ""
        page.click("#rank-run")  # with what was typed meanwhile
        wait_for_ranks(page)
        assert sorted(shown_texts(page, "bi")) == sorted(CANDIDATES)
        source = page.locator("#rank-code code").text_content()
        assert "$TERCET_API_KEY" in source
        assert key not in source
        stored = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, location.href])")
        assert key not in stored
        page.close()


@pytest.mark.skipif(
    not AXE.is_file(), reason="axe-core is not installed: npm install axe-core, or set AXE_CORE"
)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_barriers(browser: Any, address: str, theme: str) -> None:
    with opened(browser, address, color_scheme=theme) as page:
        page.evaluate(AXE.read_text(encoding="utf-8"))

        def check() -> None:
            found = page.evaluate("axe.run(document)")
            assert [
                (each["id"], [node["html"][:200] for node in each["nodes"]]) for each in found["violations"]
            ] == []

        check()
        rank(page, TURNS, CANDIDATES)
        column(page, "poly").first.click()
        page.wait_for_selector(".context-text mark")
        check()
        page.click("#tab-search")
        check()
        page.fill("#query", SEARCH)
        page.click("#search-run")
        page.wait_for_selector(".hit .score")
        check()


def test_examples_come_from_the_sample_data(page: Any) -> None:
    known = {text for language in ("en", "ko") for each in chats(language) for text in each.turns}
    for each in (*questions("en"), *questions("ko")):
        known |= {each.question, each.answer, each.context}
    for pair in pairs("ko"):
        known |= {pair.context, pair.candidate}
    for name in ("corpus", "queries"):
        lines = (sample_folder("abstracts.en") / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        known |= {json.loads(line)["text"] for line in lines}
    examples = page.evaluate("import('/playground/examples.js').then(({examples}) => examples)")
    assert {each["language"] for each in examples} == {"en", "ko"}
    for example in examples:
        assert set(example["turns"]) | set(example["candidates"]) <= known
