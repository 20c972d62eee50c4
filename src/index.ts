/// <reference lib="esnext.disposable" preserve="true" />
export type {
  AdjustRequest,
  AdminCall,
  AuditAction,
  AuditPageRequest,
  AuditRecord,
  AuditStore,
  Awaitable,
  Backend,
  BucketRecord,
  BucketStore,
  BucketToPause,
  Call,
  ChangeProgress,
  ChargeLevels,
  ChargeOutcome,
  ChargeReceipt,
  ConfigChange,
  ConfigRead,
  ConfigStore,
  ConsumeDecision,
  ConsumeOutcome,
  ConsumeRequest,
  EntityChange,
  EntityRecord,
  EntityStore,
  ExtendRequest,
  LeaseLevel,
  LeaseRecord,
  LeaseStore,
  LevelAnswer,
  LevelAsk,
  LevelChange,
  LevelCharge,
  LevelOperation,
  LevelRecord,
  LevelRef,
  LevelResult,
  ManagedMark,
  ManagedRecord,
  ManagedStore,
  NamespaceRecord,
  NamespaceStore,
  OperateRequest,
  OperationResult,
  Page,
  PageRequest,
  GrantLocation,
  RegistryCall,
  RegistryChange,
  Reshard,
  Tuning,
  UsageQuery,
  UsageRecord,
  UsageStore,
} from './backend.js';
export { file, type FileOptions } from './backends/embedded/file/file.js';
export { memory, type MemoryOptions } from './backends/embedded/memory.js';
export { type Clock, type SleepOptions, systemClock } from './clock.js';
export type { ManifestChange, ManifestDrift } from './core/manifest/compare-object.js';
export type {
  ConfigLevel,
  ConfigLevels,
  ConfigSource,
  ConfigVersion,
  OnUnavailable,
  StoredConfig,
} from './core/config/config.js';
export type {
  Amount,
  AskedAmount,
  ClosedState,
  Holder,
  LimitStatus,
  ParentAmount,
  PortablePart,
  Verdict,
} from './core/bucket/decide.js';
export type { DenialReason } from './core/bucket/conclude.js';
export type { AmountChange, RateChange } from './core/bucket/holder-rules.js';
export type { FollowedAccount, PortableChange, PortableOperation } from './core/bucket/portable.js';
export type { StatedAmount, StatedDeltas, StatedTotals } from './core/bucket/portable-account.js';
export type { ResidentBucket, ResidentBuckets } from './core/bucket/resident-buckets.js';
export { type ErrorCode, type ErrorTraits, errorTraits } from './core/error-codes.js';
export {
  AccessDenied,
  ApplyStopped,
  BackendUnavailable,
  EntityExists,
  EntityNotFound,
  HeadgateError,
  InfrastructureError,
  isHeadgateError,
  LeaseClosed,
  LeaseTokenInvalid,
  LimitsNotConfigured,
  NamespaceConflict,
  NamespaceNotFound,
  SchemaMismatch,
  type UnavailableKind,
  ValidationError,
  VersionConflict,
} from './core/errors.js';
export { Limit, type RateOptions } from './core/limit.js';
export type { LimitOptions } from './core/limit-options.js';
export type { LimitKind } from './core/limit-kind.js';
export type { Pause, PauseChange, PauseData, PausedBy, PauseView } from './core/pause.js';
export { RateLimitExceeded } from './core/rate-limit-exceeded.js';
export type { ManagedTarget as ManifestTarget } from './core/manifest/managed.js';
export type { ManifestData, ManifestEntity, ManifestLimits } from './core/manifest/manifest.js';
export type { EpochMs, Millitokens } from './core/units.js';
export type { UsageWindow } from './core/usage/usage.js';
export type { AuditApi, AuditEvent, AuditQuery } from './limiter/api/audit-api.js';
export type { BucketLimit, BucketsApi, BucketView } from './limiter/api/buckets-api.js';
export type {
  ConfigApi,
  ConfigEntry,
  ConfigLevelRef,
  ConfigView,
  EffectiveConfig,
  LimitsConfig,
  SystemConfig,
} from './limiter/api/config-api.js';
export type { ConfigCacheStats } from './limiter/config/config-cache.js';
export type {
  ConfigChanged,
  DecisionMade,
  EntityPaused,
  EntityResumed,
  LeaseEnded,
  LimitAsked,
  LimiterEvent,
  LimitViolation,
  OutageBegan,
  OutageEnded,
  ProviderThrottled,
  ShardsChanged,
  SlotsHeld,
} from './limiter/events/limiter-event.js';
export type { Decision, Denied, Granted } from './limiter/acquire/decision.js';
export type { DecidedBy, DecisionEvent } from './limiter/acquire/decision-event.js';
export type { EntitiesApi, Entity, EntityUpdate, NewEntity } from './limiter/api/entities-api.js';
export type { AdjustOptions, Lease, LeaseState } from './limiter/lease/lease.js';
export type { LeaseQuery, LeasesApi, LeaseView } from './limiter/api/leases-api.js';
export type { Listing, ListOptions } from './limiter/api/listing.js';
export type { ManifestApi } from './limiter/manifest/manifest-api.js';
export type { ApplyOptions, ApplyProgress, ManifestPlan } from './limiter/manifest/manifest-types.js';
export type { Namespace, NamespacesApi } from './limiter/api/namespaces-api.js';
export type { CloseOptions, PingResult } from './limiter/store-connection.js';
export type { LimiterOptions } from './limiter/options.js';
export { RateLimiter } from './limiter/rate-limiter.js';
export type { AcquireRequest, Amounts } from './limiter/acquire/request.js';
export type { ChargeRequest } from './limiter/charge/charge.js';
export type { PauseRequest, ResumeRequest } from './limiter/api/pause-api.js';
export type { LimitCapacity, ResourcesApi } from './limiter/api/resources-api.js';
export type { OnThrow, RunOptions } from './core/lease-scope.js';
export type { StatusRequest } from './limiter/acquire/status.js';
export type { Usage, UsageApi, UsageRange, UsageSummary } from './limiter/api/usage-api.js';
export type { WaitingStatus } from './limiter/waiting/waiting-status.js';
