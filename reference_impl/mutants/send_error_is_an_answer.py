"""A producer takes every answer for an acknowledgement, also one that is an error.

Shows when the broker answers a send with an error.
"""

from reference_impl.core.producer import Producer, Sending
from reference_impl.protocol.codes import STORED, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import SendResponse

NAME = "send-error-is-an-answer"
BUG = "hand-made: the code of the answer to a send is not looked at, only whether there was one"
SOURCE = (
    "MQClientAPIImpl.processSendResponse, which throws for every code but those of a stored message"
)
KILLED_BY = "SND-1"


NOWHERE = SendResponse(msg_id="", queue_id=0, queue_offset=0)
"""What is read of an answer that has no fields."""


class Mutated(Producer):
    def sent(self, sending: Sending, now_ms: int, answer: Command | None, reason: str) -> None:
        is_error = answer is not None and answer.code not in STORED
        if is_error and sending.message.transaction is None:
            answer = Command(ResponseCode.SUCCESS, NOWHERE.to_ext())
        super().sent(sending, now_ms, answer, reason)


producer = Mutated
