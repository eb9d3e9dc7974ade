"""What a system under test can do, or can have done to it, beyond running its parties.

A target names its abilities, a fault and a part of a run what they need; nobody asks a target what it is. The values
are the words for people: what was left out for want of an ability says which one.
"""

from __future__ import annotations

from enum import StrEnum


class Ability(StrEnum):
    """An ability's value completes the sentence "the target can't ...", without the "can't"."""

    WIRE = "answer raw requests of the remoting protocol"
    REPLAY = "repeat a plan to the byte"
    READ = "read a queue to its end"
    PROGRESS = "tell what its store says a group has reached"
    GIVE_UP = "give a message up that always fails"
    CRASH_CLIENT = "kill a client"
    PAUSE_CLIENT = "stop a client between two instructions, and let it go on"
    CRASH_BROKER = "kill a broker and start it again"
    CRASH_NAME_SERVER = "kill the name server and start it again"
    CUT_POWER = "cut the power of a broker's machine"
    UPGRADE_BROKER = "end a broker in good order and start another version on its store"
    MORE_BROKERS = "run several brokers at once"
    PAUSE_BROKER = "stop a broker between two instructions, and let it go on"
    STARVE_CLIENT = "let a client have few per cent of a core"
    STARVE_BROKER = "let a broker have few per cent of a core"
    FILL_DISK = "fill a broker's disk, and make room again"
    SLOW_DISK = "make a broker's disk sync late"
    BREAK_LINK = "break, hold and delay a connection"
    BREAK_ONE_WAY = "break a connection in one direction only"
    BREAK_ONE_LINK = "break the link of one client alone"
    SHAPE_LINK = "throttle, fragment, truncate and reset a connection"
    SPOIL_LINK = "lose, double and reorder what a connection carries"
    DROP_REQUEST = "lose one request or its answer"
    REFUSE_REQUEST = "answer one request with an error in its broker's place"
    STEP_CLOCK = "step a client's wall clock"
    STEP_BROKER_CLOCK = "step a broker's wall clock"
    OWN_SYSTEM = "start a system of its own for each search"
