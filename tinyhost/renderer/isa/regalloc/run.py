"""The allocator's driver.

One walk over the program in layout order keeps the state of the register file and decides everything on the way, with
exact knowledge of what is live and of where each value is read next: values are evicted by furthest next read, loops
get their entry state decided at their head, and block borders are made to agree. Each step is a file of this folder.
"""
from __future__ import annotations

from tinyhost.renderer.isa.regalloc.assign import assign_copy, assign_plain
from tinyhost.renderer.isa.regalloc.checker import check
from tinyhost.renderer.isa.regalloc.constrained import assign_constrained
from tinyhost.renderer.isa.regalloc.edges import Borders, enter_block, leave_block
from tinyhost.renderer.isa.regalloc.flow import analyse_flow
from tinyhost.renderer.isa.regalloc.liveness import analyse_liveness
from tinyhost.renderer.isa.regalloc.machine import machine_of
from tinyhost.renderer.isa.regalloc.result import finish
from tinyhost.renderer.isa.regalloc.slots import assign_slots
from tinyhost.renderer.isa.regalloc.state import State
from tinyhost.renderer.isa.regalloc.types import Allocation, Function, Kind, MachineEnv


def run(function: Function, env: MachineEnv, checked: bool = False) -> Allocation:
    """Allocate ``function`` on ``env``; with ``checked`` the result is proved right before it is returned.

    Raises:
        AllocationError: the function breaks a precondition, or an instruction needs more registers than there are.
        CheckError: the proof failed (a bug of the allocator).
    """
    machine = machine_of(env)
    flow = analyse_flow(function, machine)
    live = analyse_liveness(function, flow, len(env.classes))
    state = State(function, machine, flow, live)
    _walk(state)
    allocation = finish(state, assign_slots(state))
    if checked:
        check(function, env, allocation)
    return allocation


def _walk(state: State) -> None:
    borders = Borders(state)
    flow, insts, plans, copy = state.flow, state.function.insts, state.flow.plans, Kind.COPY
    for block, (start, end) in enumerate(zip(flow.start, flow.end)):
        enter_block(state, borders, block)
        for i in range(start, end):
            inst, plan = insts[i], plans[i]
            if not plan.plain:
                assign_constrained(state, i, inst, plan)
            elif inst.kind is copy:
                assign_copy(state, i, inst, plan)
            elif plan.arity:
                assign_plain(state, i, inst, plan)
        leave_block(state, borders, block)
