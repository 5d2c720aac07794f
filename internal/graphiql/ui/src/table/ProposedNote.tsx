/** Says that the numbers and the picture are those of a proposal. */
export function ProposedNote({ onReset }: { onReset: () => void }) {
  return (
    <p className="proposed">
      This is the table with the proposed lists of your file.{' '}
      <button type="button" onClick={onReset}>
        Back to the table as it is
      </button>
    </p>
  )
}
