"""Words that say nothing about the topic of a text, in English and Korean."""

import re

_ENGLISH = """
arent cant couldnt didnt doesnt dont hasnt havent im isnt ive shouldnt thats wasnt wont wouldnt
a about after again all also although am an and another any anyone anything are as at away back be
became because become been before being between both but by came can can't cannot come could couldn't
did didn't do does doesn't doing don't done down during each either else even ever every few for from
further get gets getting give given go goes going gone got had has hasn't have haven't having he her
here hers herself him himself his how however i i'd i'll i'm i've if in instead into is isn't it it's
its itself just keep know let like made make makes many may maybe me might mine more most much must my
myself near need neither never no nobody none nor not nothing now of off often on once one only or other
others our ours out over own per perhaps please put quite rather really said same say says see seem
seems several shall she should shouldn't since so some someone something soon still such take than thank
thanks that that's the their theirs them then there there's these they they're thing things this those
though through to together too toward two under until up upon us use used using very want wants was
wasn't way we we're well went were weren't what what's whatever when whenever where whether which while
who whom whose why will with within without won't would wouldn't yes yet you you'd you'll you're you've
your yours yourself
"""

_KOREAN = """
가장 같은 것 것은 것을 것이 계속 그 그것 그냥 그래서 그러나 그런 그럼 그리고 너무 누가 누구 다른 다시
대한 대해 더 되는 된 들 등 등을 때 때문에 또 또는 많이 매우 모두 모든 무슨 무엇 바로 별로 보통 수 수도
싶은 아니면 아주 어느 어디 어떤 어떻게 언제 얼마 얼마나 여기 오늘 왜 우리 위해 이 이것 이런 이렇게 이미
있는 잘 저 저는 저희 정말 제 제가 좀 지금 하고 하는 하지만 한 할 함께 해서 혹시
"""

FUNCTION_WORDS = frozenset(_ENGLISH.split() + _KOREAN.split())

KOREAN_PREDICATE = re.compile(
    "(?:나요|까요|가요|세요|어요|아요|여요|해요|네요|죠|지요|니다|니까|습니까|려면|으면|하면|되면|해야|하려고|인데|는데|었다|았다|했다|한다|이다)$"
)
"""Endings of Korean verbs and adjectives, which rarely name a topic."""


def is_function_word(word: str) -> bool:
    """Whether a word in lower case says nothing about a topic."""
    return word.replace("’", "'") in FUNCTION_WORDS or bool(KOREAN_PREDICATE.search(word))
