/** Stands for the client of a vendor, so that the examples run without a network. */
export async function callModel(question: string): Promise<{ text: string; usage: { total_tokens: number } }> {
  if (question === 'fail') throw new Error('The vendor failed');
  return { text: `You asked: ${question}`, usage: { total_tokens: 700 } };
}
