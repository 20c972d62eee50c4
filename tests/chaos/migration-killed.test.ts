import { describeMigrationKilled } from '../support/migration/killed.js';

describeMigrationKilled(320);
