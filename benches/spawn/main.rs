//! The floors of `stat`, and the runner of its commands: as small as a program can be, so that what it
//! measures is the command and not itself. (A child's peak memory includes its parent's at the fork.)
//!
//! ```text
//! spawn run CMD…            runs CMD and writes to descriptor 3: wall ns, CPU ns, peak KiB, exit status
//! spawn floor N CMD…        forks, opens N software events (inherited, started by the exec), execs, waits,
//!                           reads them as one group and writes the counts to standard error
//! spawn interval US N CPUS  reads 4 software events of CPUS CPUs every US microseconds, N times, and writes
//!                           a line each time
//! ```
#![no_std]
#![no_main]

use core::ffi::{c_char, c_int, c_long, c_void};
use core::ptr;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the process.
    unsafe { _exit(125) }
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Time {
    s: i64,
    sub: i64,
}

/// `struct rusage`: its first three fields are all that is used.
#[repr(C)]
#[derive(Default)]
struct Usage {
    user: Time,
    system: Time,
    peak_kib: c_long,
    rest: [c_long; 13],
}

#[link(name = "c")]
unsafe extern "C" {
    fn fork() -> c_int;
    fn execvp(file: *const c_char, argv: *const *const c_char) -> c_int;
    fn wait4(pid: c_int, status: *mut c_int, options: c_int, usage: *mut Usage) -> c_int;
    fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    fn clock_nanosleep(clock: c_int, flags: c_int, until: *const Time, left: *mut Time) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn pipe2(ends: *mut c_int, flags: c_int) -> c_int;
    fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
    fn read(fd: c_int, to: *mut c_void, bytes: usize) -> isize;
    fn write(fd: c_int, from: *const c_void, bytes: usize) -> isize;
    fn close(fd: c_int) -> c_int;
    fn ioctl(fd: c_int, request: u64, ...) -> c_int;
    fn _exit(status: c_int) -> !;
}

#[cfg(target_arch = "x86_64")]
const PERF_EVENT_OPEN: c_long = 298;
#[cfg(not(target_arch = "x86_64"))]
const PERF_EVENT_OPEN: c_long = 241;
const CLOEXEC: c_int = 0o2000000;
const MONOTONIC: c_int = 1;
const EVENTS_MAX: usize = 16;
/// task-clock, page-faults, context-switches, cpu-migrations, minor-faults, major-faults, …
const CONFIGS: [u64; EVENTS_MAX] = [1, 2, 3, 4, 5, 6, 0, 7, 8, 9, 1, 2, 3, 4, 5, 6];

#[unsafe(no_mangle)]
extern "C" fn main(argc: c_int, argv: *const *const c_char) -> c_int {
    // SAFETY: `argv` has `argc` C strings and a null pointer behind them, and `arg` is asked below `argc`.
    let arg = |place: usize| unsafe { *argv.add(place) };
    // SAFETY: in bounds, see `arg`.
    let from = |place: usize| unsafe { argv.add(place) };
    if argc < 3 {
        return 2;
    }
    // SAFETY: an argument has at least its final NUL.
    match unsafe { *arg(1) } as u8 {
        b'r' => run(from(2)),
        b'f' if argc > 3 => floor(number(arg(2)), from(3)),
        b'i' if argc > 4 => interval(number(arg(2)) as i64, number(arg(3)), number(arg(4))),
        _ => 2,
    }
}

fn run(command: *const *const c_char) -> c_int {
    // SAFETY: plain calls on memory that lives here; the child only execs or exits.
    unsafe {
        fcntl(3, 2, 1); // FD_CLOEXEC
        let (mut begin, mut end) = (Time::default(), Time::default());
        let (mut status, mut usage) = (0, Usage::default());
        clock_gettime(MONOTONIC, &mut begin);
        let pid = fork();
        if pid == 0 {
            execvp(*command, command);
            _exit(127);
        }
        wait4(pid, &mut status, 0, &mut usage);
        clock_gettime(MONOTONIC, &mut end);
        let mut text = Text::new();
        text.number(((end.s - begin.s) * 1_000_000_000 + end.sub - begin.sub) as u64);
        let seconds = usage.user.s + usage.system.s;
        text.number((seconds * 1_000_000_000 + (usage.user.sub + usage.system.sub) * 1000) as u64);
        text.number(usage.peak_kib as u64);
        text.number(if status & 0x7f == 0 { (status >> 8 & 0xff) as u64 } else { 255 });
        text.write(3);
    }
    0
}

fn floor(events: usize, command: *const *const c_char) -> c_int {
    let events = events.min(EVENTS_MAX);
    // SAFETY: plain calls on memory that lives here; the child only reads, execs or exits.
    unsafe {
        let mut ends = [0; 2];
        if pipe2(ends.as_mut_ptr(), CLOEXEC) != 0 {
            return 1;
        }
        let pid = fork();
        if pid == 0 {
            let mut word = 0_u8;
            close(ends[1]);
            if events > 0 && read(ends[0], (&raw mut word).cast(), 1) != 1 {
                _exit(127);
            }
            execvp(*command, command);
            _exit(127);
        }
        let mut leader = -1;
        for &config in CONFIGS.iter().take(events) {
            let first = leader < 0;
            let fd = open(config, pid, -1, leader, first, true);
            if fd < 0 {
                return 1;
            }
            if first {
                leader = fd;
            }
        }
        if events > 0 && write(ends[1], c"g".as_ptr().cast(), 1) != 1 {
            return 1;
        }
        let mut status = 0;
        wait4(pid, &mut status, 0, ptr::null_mut());
        if events > 0 {
            let mut words = [0_u64; EVENTS_MAX + 3];
            if read(leader, words.as_mut_ptr().cast(), size_of_val(&words)) < 0 {
                return 1;
            }
            let mut text = Text::new();
            words[3..].iter().take(events).for_each(|&word| text.number(word));
            text.write(2);
        }
        status >> 8 & 0xff
    }
}

fn interval(us: i64, times: usize, cpus: usize) -> c_int {
    // SAFETY: plain calls on memory that lives here.
    unsafe {
        let mut leaders = [-1; 64];
        for (cpu, leader) in leaders.iter_mut().enumerate().take(cpus) {
            for &config in &CONFIGS[..4] {
                let fd = open(config, -1, cpu as c_int, *leader, *leader < 0, false);
                if fd < 0 {
                    return 1;
                }
                if *leader < 0 {
                    *leader = fd;
                }
            }
            ioctl(*leader, 0x2400, 0);
        }
        let mut next = Time::default();
        clock_gettime(MONOTONIC, &mut next);
        for _ in 0..times {
            next.sub += us * 1000;
            next.s += next.sub / 1_000_000_000;
            next.sub %= 1_000_000_000;
            clock_nanosleep(MONOTONIC, 1, &next, ptr::null_mut());
            let mut sums = [0_u64; 4];
            for &leader in leaders.iter().take(cpus) {
                let mut words = [0_u64; 7];
                if read(leader, words.as_mut_ptr().cast(), size_of_val(&words)) < 0 {
                    return 1;
                }
                sums.iter_mut().zip(&words[3..]).for_each(|(sum, word)| *sum += word);
            }
            let mut text = Text::new();
            sums.iter().for_each(|&sum| text.number(sum));
            text.write(2);
        }
    }
    0
}

/// Opens a software event; a leader starts disabled (`command`: until the exec).
fn open(config: u64, pid: c_int, cpu: c_int, leader: c_int, first: bool, command: bool) -> c_int {
    let mut attr = [0_u64; 17];
    // type = PERF_TYPE_SOFTWARE, size; little end first or not.
    let head = [1_u32, size_of_val(&attr) as u32];
    // SAFETY: two halves make a word.
    attr[0] = unsafe { core::mem::transmute::<[u32; 2], u64>(head) };
    attr[1] = config;
    attr[4] = 1 | 2 | 8; // both times, and the group
    attr[5] = bit(0, first) | bit(1, command) | bit(12, command && first); // disabled, inherit, enable_on_exec
    // SAFETY: `attr` is readable for the size that it says.
    unsafe { syscall(PERF_EVENT_OPEN, attr.as_ptr(), pid, cpu, leader, 8_u64) as c_int }
}

/// Bit `number` of a bit field.
fn bit(number: u32, on: bool) -> u64 {
    let place = if cfg!(target_endian = "little") { number } else { 63 - number };
    u64::from(on) << place
}

fn number(text: *const c_char) -> usize {
    let mut number = 0;
    for place in 0..9 {
        // SAFETY: `text` is a C string, and nothing behind its NUL is read.
        match unsafe { *text.add(place) } as u8 {
            digit @ b'0'..=b'9' => number = number * 10 + usize::from(digit - b'0'),
            _ => break,
        }
    }
    number
}

/// A line of numbers.
struct Text {
    bytes: [u8; 400],
    length: usize,
}

impl Text {
    fn new() -> Self {
        Self { bytes: [b' '; 400], length: 0 }
    }

    fn number(&mut self, mut value: u64) {
        let mut digits = [0; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        for &digit in digits.iter().skip(first) {
            self.push(digit);
        }
        self.push(b' ');
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    fn write(&mut self, fd: c_int) {
        self.push(b'\n');
        // SAFETY: the bytes are readable for their length.
        unsafe { write(fd, self.bytes.as_ptr().cast(), self.length) };
    }
}
