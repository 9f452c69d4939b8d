//! Reads of a program's context, each one load with an offset that is a constant.
//!
//! The verifier refuses a computed offset, and LLVM makes one of two loads in two branches if it can see
//! that they are loads. So they are written in assembly.

use core::arch::asm;
use core::ffi::c_void;

/// The 8-byte word number `WORD` of the context, at byte 8 × `WORD`.
///
/// It reads the arguments of raw tracepoints and `tp_btf`, `fentry` and the like, which are such words; in
/// `fexit` the return value follows the arguments. The context of `perf_event` programs begins with the
/// registers of the host: the instruction pointer is word 16 on x86_64 and word 32 on arm64.
///
/// # Safety
///
/// `ctx` is the pointer that the program was called with. A word that the kind of program does not have is
/// refused by the verifier.
#[inline(always)]
pub unsafe fn context_word<const WORD: usize>(ctx: *const c_void) -> u64 {
    let word: u64;
    unsafe {
        asm!(
            "{word} = *(u64 *)({ctx} + {offset})",
            word = out(reg) word,
            ctx = in(reg) ctx,
            offset = const 8 * WORD,
            options(readonly, nostack, preserves_flags),
        );
    }
    word
}

/// The 4-byte half word number `HALF` of the context, at byte 4 × `HALF`: a field of a tracepoint's record.
///
/// # Safety
///
/// As for [`context_word`].
#[inline(always)]
pub unsafe fn context_half<const HALF: usize>(ctx: *const c_void) -> u32 {
    let half: u64;
    unsafe {
        asm!(
            "{half} = *(u32 *)({ctx} + {offset})",
            half = out(reg) half,
            ctx = in(reg) ctx,
            offset = const 4 * HALF,
            options(readonly, nostack, preserves_flags),
        );
    }
    half as u32
}
