//! Evaluates chunks of the input on all cores and reports the results.
//!
//! Every worker takes one chunk at a time; results are joined in input order. The number of
//! chunks in flight is bounded, so memory does not grow with the input. A single chunk is
//! evaluated on the reading thread.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::command_host::CommandHost;
use crate::heading::Heading;
use crate::part::{Outcome, Part};
use crate::piece::{Piece, Pieces};
use crate::report::set::Reports;
use crate::resources::Resources;
use crate::scan::{Scan, Scanner};
use crate::stream::Streams;
use crate::worker::{Plan, Worker};

/// Time before progress is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// Evaluates all chunks; adds their findings to the reports in input order.
///
/// # Errors
/// Fails if the writer fails.
pub fn run<'p>(
    plan: Plan<'p>,
    mut pieces: Pieces,
    heading: Heading,
    reports: &mut Reports,
    streams: &mut Streams<'_>,
) -> io::Result<Outcome<'p>> {
    let mut outcome = Outcome::new(plan.facts);
    let Some(first) = pieces.next() else {
        heading.write(Some(0), streams)?;
        return Ok(outcome);
    };
    let Some(second) = pieces.next() else {
        let part = Worker::new(plan).evaluate(first)?;
        heading.write(Some(part.outcome.objects()), streams)?;
        take(part, &mut outcome, reports, streams)?;
        return Ok(outcome);
    };
    heading.write(None, streams)?;
    let mut progress = Progress::new(pieces.size);
    let bar = progress.bar.clone();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let (to_workers, waiting) = sync_channel(workers);
    let (to_writer, parts) = channel();
    let waiting = Mutex::new(waiting);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let (waiting, to_writer) = (&waiting, to_writer.clone());
            scope.spawn(move || work(plan, waiting, &to_writer));
        }
        drop(to_writer);
        let flow = Flow {
            // Chunks that were read but not yet reported.
            limit: 3 * workers,
            to_workers: Some(to_workers),
            parts,
            progress: &mut progress,
        };
        let mut pieces = [first, second].into_iter().chain(pieces);
        flow.pump(&mut pieces, |part| {
            bar.suspend(|| {
                take(part, &mut outcome, reports, streams)?;
                streams.err.flush()
            })
        })
    })?;
    bar.finish_and_clear();
    Ok(outcome)
}

/// Evaluates resources that are all in memory, with a host that knows them.
///
/// # Errors
/// Fails if the writer fails.
pub fn run_whole<'p>(
    plan: Plan<'p>,
    mut resources: Resources,
    host: &mut CommandHost,
    reports: &mut Reports,
    streams: &mut Streams<'_>,
) -> io::Result<Outcome<'p>> {
    let mut scan = Scan::new(plan.facts);
    let unreadable = resources.problems.len();
    let mut scanner = Scanner::new(plan.engine, plan.settings);
    let problems = scanner.scan(&resources, &mut scan, host);
    resources.problems.extend(problems);
    let part = Part::new(scan, &resources, unreadable, plan.view)?;
    let mut outcome = Outcome::new(plan.facts);
    take(part, &mut outcome, reports, streams)?;
    outcome.services = std::mem::take(&mut host.services);
    outcome.samples = vec![resources];
    Ok(outcome)
}

fn take<'p>(
    part: Part<'p>,
    outcome: &mut Outcome<'p>,
    reports: &mut Reports,
    streams: &mut Streams<'_>,
) -> io::Result<()> {
    streams.err.write_all(&part.told)?;
    reports.add(part.reports, streams.out)?;
    outcome.add(part.outcome);
    Ok(())
}

type Result<'p> = (usize, io::Result<Part<'p>>);

/// Channels to and from the workers.
struct Flow<'s, 'p> {
    limit: usize,
    to_workers: Option<SyncSender<(usize, Piece)>>,
    parts: Receiver<Result<'p>>,
    progress: &'s mut Progress,
}

impl<'p> Flow<'_, 'p> {
    /// Distributes chunks and receives results in chunk order, until both are exhausted.
    fn pump(
        mut self,
        pieces: &mut dyn Iterator<Item = Piece>,
        mut take: impl FnMut(Part<'p>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut waiting = BTreeMap::new();
        let (mut sent, mut taken) = (0, 0);
        while self.to_workers.is_some() || taken < sent {
            while let Some(sender) = self
                .to_workers
                .as_ref()
                .filter(|_| sent - taken < self.limit)
            {
                let Some(piece) = pieces.next() else {
                    self.to_workers = None;
                    break;
                };
                self.progress.add(piece.bytes);
                if sender.send((sent, piece)).is_err() {
                    self.to_workers = None;
                    break;
                }
                sent += 1;
            }
            if taken == sent {
                continue;
            }
            // Workers end only when there are no more chunks.
            let Ok((number, part)) = self.parts.recv() else {
                break;
            };
            waiting.insert(number, part);
            while let Some(part) = waiting.remove(&taken) {
                taken += 1;
                take(part?)?;
            }
        }
        Ok(())
    }
}

/// Processes chunks until there are no more.
fn work<'p>(
    plan: Plan<'p>,
    pieces: &Mutex<Receiver<(usize, Piece)>>,
    to_writer: &Sender<Result<'p>>,
) {
    let mut worker = Worker::new(plan);
    loop {
        let next = match pieces.lock() {
            Ok(pieces) => pieces.recv(),
            Err(_) => return,
        };
        let Ok((number, piece)) = next else { return };
        if to_writer.send((number, worker.evaluate(piece))).is_err() {
            return;
        }
    }
}

/// Progress of reading the input, shown only on a terminal and after a delay.
struct Progress {
    bar: ProgressBar,
    begin: Instant,
}

impl Progress {
    fn new(size: Option<u64>) -> Self {
        let bar = ProgressBar::with_draw_target(size, ProgressDrawTarget::hidden());
        let template = match size {
            Some(_) => "{wide_bar} {bytes}/{total_bytes} {bytes_per_sec}",
            None => "{spinner} {bytes} {bytes_per_sec}",
        };
        let style = ProgressStyle::with_template(template);
        Self {
            bar: bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())),
            begin: Instant::now(),
        }
    }

    fn add(&mut self, bytes: u64) {
        if self.bar.is_hidden() && self.begin.elapsed() > PATIENCE && io::stderr().is_terminal() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(bytes);
    }
}
