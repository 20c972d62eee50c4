// #region table
import { createTable } from 'headgate/dynamodb';

await createTable({ tableName: 'headgate', region: 'eu-west-1' }); // changes nothing if the table is ready
// #endregion table
