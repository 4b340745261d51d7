"""What a program asks of an answer: whether it says yes, its value, and its error."""

import pytest

from specs.errors import AnswerError
from specs.limits.protocol import RETRY_AFTER
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code

REQUEST = Message(7, MessageType.CREATE, "hyperty://a.ex/1", "hyperty://b.ex/2", {"value": 5})
EVENT = Message(8, MessageType.UPDATE, "hyperty://a.ex/1", "hyperty://a.ex/1/changes")


@pytest.mark.parametrize("code", [Code.TRYING, Code.PROGRESS])
def test_a_provisional_answer_says_neither_yes_nor_no(code):
    answer = reply_to(REQUEST, code)
    assert (answer.ok, answer.value, answer.raise_for_code()) == (False, None, answer)


@pytest.mark.parametrize("code", [one for one in Code if one >= 400])
def test_a_refusal_is_an_error(code):
    answer = refuse(REQUEST, code, "not now")
    assert not answer.ok
    with pytest.raises(AnswerError, match=f"^{int(code)} not now$") as raised:
        answer.raise_for_code()
    error = raised.value
    later = RETRY_AFTER if code is Code.UNAVAILABLE else None
    assert (error.code, error.description, error.retry_after) == (code, "not now", later)


@pytest.mark.parametrize("message", [REQUEST, EVENT])
def test_what_is_no_answer_has_no_code(message):
    assert message.value == message.body.get("value")
    with pytest.raises(TypeError, match=r"only an answer has a code, and hyperty://a.ex/1#"):
        _ = message.ok
    with pytest.raises(TypeError, match="only an answer"):
        message.raise_for_code()
