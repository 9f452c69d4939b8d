//! One measurement, from opening the events to the result.

use std::time::{Duration, Instant};

use perfmon::{By, Count, CpuTimes, Ended, Scope, Session, SignalFd, Snapshot, Workload};

use super::metrics::{Metrics, Times};
use super::results::{INTERVAL_SCHEMA, Interval, RESULT_SCHEMA, StatResult, Turns, rows};
use super::scope::Plan;
use super::sure;
use super::watch::{Event, Watch};
use crate::args::{Accounting, Stat};
use crate::exit::{self, Failure};
use crate::output::{self, Sink};

/// How often ended threads are noted, where each has its own row: long before the kernel's rings are full.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

/// How often it is looked at whether estimates are sure enough.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// One run of the command, or one watch over what runs already.
pub(crate) struct Measurement<'a> {
    args: &'a Stat,
    plan: &'a Plan,
    metrics: &'a Metrics,
    signals: &'a SignalFd,
    interrupted: bool,
}

/// When counting began and ended, and how the command did.
struct Course {
    wall: Duration,
    ended: Option<Ended>,
}

/// What was shown last, and of which scope.
struct Shown<'a> {
    scope: &'a Scope,
    snapshot: Snapshot,
    /// Since counting began.
    time: Duration,
    cpu_times: Option<CpuTimes>,
}

impl<'a> Measurement<'a> {
    pub(crate) fn new(
        args: &'a Stat,
        plan: &'a Plan,
        metrics: &'a Metrics,
        signals: &'a SignalFd,
    ) -> Self {
        Self { args, plan, metrics, signals, interrupted: false }
    }

    /// Whether the user asked for the end.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupted
    }

    /// Opens the events, counts, and says what was counted.
    pub(crate) fn run(
        &mut self,
        session: &mut Session,
        sink: &mut Sink,
    ) -> Result<StatResult, Failure> {
        let args = self.args;
        let mut workload = match args.workload.as_slice() {
            [] => None,
            argv => Some(Workload::spawn(argv, Some(self.signals.mask_before()))?),
        };
        let scope = self.plan.scope(args, workload.as_ref().map(Workload::pid));
        session.load(&scope)?;
        if workload.is_none() {
            check_any_is_counted(session)?;
        }
        let times_before = scope.cpu_times();
        let course = self.count(session, sink, &scope, workload.as_mut())?;
        self.check_all_was_seen(session, workload.as_ref(), &course);
        let times = match self.plan {
            Plan::Command => course.ended.map(|ended| ended.times),
            Plan::Running(_) => {
                scope.cpu_times().zip(times_before).map(|(now, before)| now.since(before))
            }
        };
        Ok(self.result(session, &scope, &course, times))
    }

    /// Takes back the counts of a command that the kernel stopped counting before its end.
    fn check_all_was_seen(
        &self,
        session: &mut Session,
        workload: Option<&Workload>,
        course: &Course,
    ) {
        let (Plan::Command, Some(workload), Some(ended)) = (self.plan, workload, course.ended)
        else {
            return;
        };
        let Stat { delay, time_limit, no_inherit, .. } = *self.args;
        let all_of_it = delay.is_none() && time_limit.is_none() && !no_inherit;
        let enabled_ns = |event| session.tally(event).enabled_ns;
        let enabled_ns = if all_of_it {
            (0..session.events().len()).map(enabled_ns).max().unwrap_or(0)
        } else {
            u64::MAX
        };
        if let Some(refusal) = workload.cut_short(&ended, enabled_ns) {
            session.disown(&refusal);
        }
    }

    /// Counts until the end.
    fn count(
        &mut self,
        session: &mut Session,
        sink: &mut Sink,
        scope: &Scope,
        mut workload: Option<&mut Workload>,
    ) -> Result<Course, Failure> {
        let starts_by_exec = matches!(self.plan, Plan::Command) && self.args.delay.is_none();
        if self.args.delay.is_none() && !starts_by_exec {
            session.start()?;
        }
        let mut began = Instant::now();
        if let Some(workload) = &mut workload {
            workload.release()?;
        }
        let mut watch = Watch::new(self.signals, workload, scope);
        let mut last = Event::Due;
        if let Some(delay) = self.args.delay {
            last = watch.next(Some(began + delay))?;
            began = Instant::now();
            if last == Event::Due {
                session.start()?;
            }
        }
        let cpu_times = self.metrics.cpu_times(scope);
        let snapshot = session.snapshot();
        let mut shown = Shown { scope, snapshot, time: Duration::ZERO, cpu_times };
        if last == Event::Due {
            last = self.watch(session, sink, &mut watch, began, &mut shown)?;
        }
        let wall = began.elapsed();
        if matches!(self.plan, Plan::Running(_)) {
            session.stop()?;
        }
        session.read_by(if self.args.per_process { By::Process } else { By::Thread });
        if self.args.interval.is_some() {
            self.show_interval(session, sink, wall, &mut shown)?;
        }
        let ended = match last {
            Event::CommandEnded(ended) => Some(ended),
            _ => watch.end_command()?,
        };
        self.interrupted = watch.interrupted;
        Ok(Course { wall, ended })
    }

    /// Watches and prints intervals, until the end or the time limit (which is `Due`).
    fn watch(
        &self,
        session: &mut Session,
        sink: &mut Sink,
        watch: &mut Watch<'_>,
        began: Instant,
        shown: &mut Shown<'_>,
    ) -> Result<Event, Failure> {
        let limit = self.args.time_limit.map(|limit| began + limit);
        let mut next_interval = self.args.interval.map(|interval| began + interval);
        let Stat { per_thread, per_process, .. } = *self.args;
        let is_drained = per_process
            || per_thread
                && (self.args.accounting == Accounting::Switch
                    || matches!(self.plan, Plan::Command));
        let looks = self.args.sets.max_error.filter(|_| matches!(self.plan, Plan::Running(_)));
        loop {
            let next_look = looks.map(|_| Instant::now() + LOOK_INTERVAL);
            let next_drain = is_drained.then(|| Instant::now() + DRAIN_INTERVAL);
            let due = [limit, next_interval, next_drain, next_look].into_iter().flatten().min();
            let event = watch.next(due)?;
            let now = Instant::now();
            if event != Event::Due || limit.is_some_and(|limit| limit <= now) {
                return Ok(event);
            }
            session.drain();
            if let Some(limit) = looks {
                session.read();
                if sure::of_rows(&rows(session, self.args, None), limit) {
                    return Ok(event);
                }
            }
            if next_interval.is_none_or(|next| now < next) {
                continue;
            }
            session.read();
            self.show_interval(session, sink, began.elapsed(), shown)?;
            next_interval = next_interval.zip(self.args.interval).map(|(next, interval)| {
                // Ticks that could not be kept are left out.
                let late =
                    now.saturating_duration_since(next).as_nanos() / interval.as_nanos().max(1);
                next + interval * u32::try_from(late + 1).unwrap_or(u32::MAX)
            });
        }
    }

    /// Prints what was counted since `shown`, which becomes what was read last.
    fn show_interval(
        &self,
        session: &Session,
        sink: &mut Sink,
        time: Duration,
        shown: &mut Shown<'_>,
    ) -> Result<(), Failure> {
        let events = rows(session, self.args, Some(&shown.snapshot));
        let cpu_times = self.metrics.cpu_times(shown.scope);
        let spent = cpu_times.zip(shown.cpu_times).map(|(now, before)| now.since(before));
        let times = Times::new(shown.scope, time.saturating_sub(shown.time), spent);
        let interval = Interval {
            schema: INTERVAL_SCHEMA,
            time_ns: nanoseconds(time),
            metrics: self.metrics.evaluate(&events, &times),
            events,
        };
        (shown.snapshot, shown.time, shown.cpu_times) = (session.snapshot(), time, cpu_times);
        output::interval(sink, self.args, &interval)
    }

    fn result(
        &self,
        session: &Session,
        scope: &Scope,
        course: &Course,
        times: Option<CpuTimes>,
    ) -> StatResult {
        let args = self.args;
        let command: Vec<String> =
            args.workload.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
        let mut notes = session.notes().to_vec();
        if times.is_none() {
            notes
                .push("user and system time are unknown: a target has ended, or gives none".into());
        }
        let events = rows(session, args, None);
        StatResult {
            schema: RESULT_SCHEMA,
            scope: scope.to_string(),
            command: Some(command).filter(|command| !command.is_empty()),
            exit_status: course.ended.map(|ended| exit::status(ended.exit)),
            wall_ns: nanoseconds(course.wall),
            user_ns: times.map(|times| nanoseconds(times.user)),
            system_ns: times.map(|times| nanoseconds(times.system)),
            metrics: self.metrics.evaluate(&events, &Times::new(scope, course.wall, times)),
            events,
            runs: 1,
            sets: Turns::of(session),
            notes,
        }
    }
}

/// Without a command there is nothing to wait for if no event can be counted.
fn check_any_is_counted(session: &Session) -> Result<(), Failure> {
    let counts = session.counts();
    let mut reasons = counts.iter().map(|row| match &row.tally.count {
        Count::Unsupported(reason) => Some((row.event, reason)),
        _ => None,
    });
    match reasons.next() {
        Some(Some((event, reason))) if reasons.all(|reason| reason.is_some()) => {
            Err(Failure::new(format!("no event can be counted; {event}: {reason}")))
        }
        _ => Ok(()),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
