import { computed, effect, signal } from '@preact/signals';
import { ApiError } from '../api/http.js';
import { listen, type LiveState } from '../api/live.js';
import { readPause } from '../api/reads.js';
import { serverNow } from '../api/server-time.js';
import { Activity } from '../model/activity.js';
import { api, session } from './session.js';

/** What the events of this server say since the page was opened. It is mutable: read it after reading `drawing`. */
export let activity = new Activity(Date.now());

/** Grows when there is something new to draw: at most once in an animation frame, and at most four times a second. */
export const drawing = signal(0);
export const live = signal<LiveState>({ kind: 'connecting' });
/** Whether events arrive: otherwise nothing is known of this server. */
export const hears = computed(() => live.value.kind === 'live' || live.value.kind === 'polling');
/** Grows with each change of limits, pauses or entities that this server reports: stored figures are read again. */
export const changed = signal(0);

const DRAW_EVERY_MS = 250;
const NOTE_AFTER_MS = 300;
const CHECK_AGAIN_MS = 10_000;
let isScheduled = false;
let drawnMs = 0;

function draw(): void {
  isScheduled = false;
  drawnMs = performance.now();
  drawing.value += 1;
}

function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  const waitMs = Math.max(0, DRAW_EVERY_MS - (performance.now() - drawnMs));
  setTimeout(() => requestAnimationFrame(draw), waitMs);
}

let isNoted = false;

/** One change of the system may be reported once for each cached entity: the pages read again once. */
function noteChange(): void {
  if (isNoted) return;
  isNoted = true;
  setTimeout(() => {
    isNoted = false;
    changed.value += 1;
  }, NOTE_AFTER_MS);
}

/** A pause that cannot be read stays, and says so. It is read again, unless the token may not read it. */
async function checkPauses(of: Activity, isAgain = false): Promise<void> {
  let isLeft = false;
  for (const paused of of.pauses.runningAt(serverNow())) {
    if (isAgain && paused.isUnchecked !== true) continue;
    const stored = await readPause(api.value, paused).catch((error: unknown) => {
      isLeft ||= !(error instanceof ApiError && error.status === 403);
      return null;
    });
    of.pauses.check(paused, stored);
    schedule();
  }
  if (isLeft && of === activity) setTimeout(() => void checkPauses(of, true), CHECK_AGAIN_MS);
}

/** Listens while a reader is signed in. Rates of an idle server fall too, so that the page is drawn every second. */
export function startLive(): void {
  setInterval(schedule, 1_000);
  effect(() => {
    const { value } = session;
    if (value.kind !== 'signed in') return undefined;
    activity = new Activity(Date.now());
    return listen({
      api: api.value,
      namespace: value.view.namespace,
      onState: (state) => {
        live.value = state;
        if (state.kind === 'not connected') activity.lose(Date.now());
        else if (state.kind !== 'connecting' && activity.regain(Date.now())) void checkPauses(activity);
      },
      onEvent: (event) => {
        activity.apply(event, Date.now());
        if (event.type === 'pause' || event.type === 'resume' || event.type === 'config-change') noteChange();
        schedule();
      },
    });
  });
}
